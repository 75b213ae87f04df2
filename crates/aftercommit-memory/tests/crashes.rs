//! A small consumer that applies messages to a set and parks those that it cannot apply, crashed
//! before and after every call over a seam: one effect per id, nothing lost.

#![expect(clippy::unwrap_used, reason = "all of this file is a test")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aftercommit_conformance::faults::{Fault, FaultyBroker, Script, Seam, Side};
use aftercommit_core::{
    Broker, Delivery, Destination, Diagnostics, FailureClass, Message, Outgoing, PublishError, Settled,
    Subscription,
};
use aftercommit_memory::{Event, MemoryBroker};

const MESSAGES: usize = 4;
const BAD: &str = "2";

type Applied = Arc<Mutex<BTreeSet<String>>>;

fn subscription() -> Subscription {
    Subscription::new("billing", "orders").unwrap().with_prefetch(2).unwrap()
}

async fn server() -> MemoryBroker {
    let server = MemoryBroker::new();
    server.declare(&subscription()).await.unwrap();
    let publisher = server.publisher().await.unwrap();
    for number in 0..MESSAGES {
        let message = Message::new("{}").with_id(number.to_string());
        let to = Destination::new("").with_routing_key("orders");
        publisher.publish(Outgoing::new(to, message)).await.unwrap();
    }
    server
}

fn id(delivery: &Delivery) -> String {
    String::from_utf8_lossy(delivery.message.id.as_deref().unwrap()).into_owned()
}

/// Consumes until the queue is empty, or until an injected fault ends it as an error.
async fn consume(broker: &dyn Broker, server: &MemoryBroker, applied: &Applied) -> Option<()> {
    let mut source = broker.source(&subscription()).await.unwrap();
    let publisher = broker.publisher().await.unwrap();
    while server.depth("orders").unwrap().total() > 0 {
        for delivery in source.recv(1).await.ok()? {
            let id = id(&delivery);
            if id == BAD {
                let consumer = subscription().consumer;
                let letter = Diagnostics::new(consumer, FailureClass::Poison, "bad")
                    .park(&delivery.message, broker.dead_letter(&subscription()));
                publisher.publish(letter).await.ok()?;
            } else {
                applied.lock().unwrap().insert(id);
            }
            ack(delivery).await?;
        }
    }
    source.close().await.ok()
}

#[expect(clippy::disallowed_methods, reason = "this consumer stands for the inbox")]
async fn ack(delivery: Delivery) -> Option<Settled> {
    delivery.into_acker().ack().await.ok()
}

fn is_whole(server: &MemoryBroker, applied: &Applied) {
    let expected: BTreeSet<_> = ["0", "1", "3"].map(str::to_owned).into();
    assert_eq!(*applied.lock().unwrap(), expected);
    assert_eq!(server.depth("orders").unwrap().total(), 0);
    let parked = server.depth("orders.billing.dead").unwrap().total();
    assert!((1..=2).contains(&parked), "{parked} copies of one dead letter");
}

/// A run with a fault, and then a new process that finishes.
async fn run_with(number: usize, fault: Fault) {
    let (server, applied) = (server().await, Applied::default());
    let script = Script::record().with(number, fault);
    let process = server.connect();
    let broker = FaultyBroker::new(Arc::new(process.clone()), script.clone());
    tokio::select! {
        _ = consume(&broker, &server, &applied) => assert_ne!(fault, Fault::Crash, "point {number} was not reached"),
        point = script.crashed() => assert_eq!(point.number, number),
    }
    process.abandon();
    consume(&server.connect(), &server, &applied).await.unwrap();
    is_whole(&server, &applied);
}

async fn trace() -> Vec<aftercommit_conformance::faults::Point> {
    let (server, applied, script) = (server().await, Applied::default(), Script::record());
    let broker = FaultyBroker::new(Arc::new(server.connect()), script.clone());
    consume(&broker, &server, &applied).await.unwrap();
    is_whole(&server, &applied);
    script.trace()
}

#[tokio::test(start_paused = true)]
async fn a_clean_run_is_recorded() {
    let seams: Vec<_> = trace().await.iter().map(|point| (point.seam, point.side)).collect();
    let call = |seam| [(seam, Side::Before), (seam, Side::After)];
    let good = [call(Seam::Recv), call(Seam::Ack)].concat();
    let bad = [call(Seam::Recv), call(Seam::Publish), call(Seam::Ack)].concat();
    let expected = [good.clone(), good.clone(), bad, good, call(Seam::Close).to_vec()].concat();
    assert_eq!(seams, expected);
}

#[tokio::test(start_paused = true)]
async fn a_fault_at_every_point_loses_nothing() {
    for point in trace().await {
        for fault in [Fault::Crash, Fault::Fail, Fault::LoseAnswer] {
            run_with(point.number, fault).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_confirmed_before_its_original_is_settled() {
    let (server, applied) = (server().await, Applied::default());
    consume(&server.connect(), &server, &applied).await.unwrap();
    let events = server.events();
    let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    let published =
        at(&|event| matches!(event, Event::Published { queues, .. } if queues == &["orders.billing.dead"]));
    let Event::Published { position: letter, .. } = events[published] else { panic!("just found") };
    let confirmed = at(&|event| matches!(event, Event::Confirmed { position } if *position == letter));
    let settled = at(&|event| matches!(event, Event::Settled { id: Some(id), .. } if id == BAD));
    assert!(published < confirmed && confirmed < settled, "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn lost_answers_leave_the_message() {
    let server = server().await;
    server.lose_answers(1);
    let publisher = server.publisher().await.unwrap();
    let message = || Outgoing::new(Destination::new("").with_routing_key("orders"), Message::new("x"));
    let answer = publisher.publish(message()).await;
    assert!(matches!(answer, Err(PublishError::Unknown { .. })), "{answer:?}");
    publisher.publish(message()).await.unwrap();
    assert_eq!(server.depth("orders").unwrap().ready, MESSAGES + 2);
}

#[tokio::test(start_paused = true)]
async fn an_abandoned_process_can_do_nothing_more() {
    let server = server().await;
    let process = server.connect();
    let publisher = process.publisher().await.unwrap();
    let mut source = process.source(&subscription()).await.unwrap();
    let delivery = source.recv(1).await.unwrap().into_iter().next().unwrap();
    process.abandon();
    assert!(source.recv(1).await.is_err());
    assert!(delivery.is_lost());
    assert!(ack(delivery).await.is_none());
    let message = Outgoing::new(Destination::new("").with_routing_key("orders"), Message::new("x"));
    assert!(publisher.publish(message).await.is_err());
    assert_eq!(server.depth("orders").unwrap().ready, MESSAGES);
}
