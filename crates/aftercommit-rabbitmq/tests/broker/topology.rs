use aftercommit_core::{BrokerError, Finding, Message, Severity, Subscription};
use aftercommit_rabbitmq::{Config, QueueType};
use serde_json::json;

use crate::support::{Queue, ack, broker, config, nothing, one, send, text, unique};
use crate::{management, support};

fn refused(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|finding| finding.severity == Severity::Refuse).collect()
}

/// Checks until it finds what it must: policies show late.
async fn find(queue: &Queue, severity: Severity, what: &str) -> Finding {
    let deadline = tokio::time::Instant::now() + support::PATIENCE;
    loop {
        let findings = queue.broker.check(&queue.subscription).await.unwrap();
        if let Some(found) =
            findings.iter().find(|found| found.severity == severity && found.what.contains(what))
        {
            return found.clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "no {what:?} in {findings:?}");
    }
}

#[tokio::test]
async fn what_we_declare_has_nothing_to_find() {
    for kind in [QueueType::Quorum, QueueType::Classic] {
        let broker = broker(config().with_queue_type(kind)).await;
        let exchange = unique("exchange");
        let subscription =
            Subscription::new("tester", unique("clean")).unwrap().with_binding(&exchange, "order.*");
        let _queue = Queue::of(broker.clone(), subscription.clone());
        broker.declare(&subscription).await.unwrap();
        broker.declare(&subscription).await.unwrap();
        assert_eq!(broker.check(&subscription).await.unwrap(), []);

        let to = aftercommit_core::Destination::new(&exchange).with_routing_key("order.created");
        let publisher = broker.publisher().await.unwrap();
        send(&*publisher, to, Message::new("routed")).await.unwrap();
        send(&*publisher, broker.dead_letter(&subscription), Message::new("dead")).await.unwrap();
        let mut source = broker.source(&subscription).await.unwrap();
        let delivery = one(&mut source).await;
        assert_eq!(delivery.message.origin.destination, exchange);
        assert_eq!(delivery.message.origin.routing_key.as_deref(), Some("order.created"));
        assert_eq!(text(&delivery), "routed");
        ack(delivery).await.unwrap();
        let mut dead = broker.dead_letters(&subscription).await.unwrap();
        assert_eq!(text(&one(&mut dead).await), "dead");
    }
}

#[tokio::test]
async fn missing_parts_are_refused_and_named() {
    let broker = broker(config()).await;
    let source = unique("missing");
    let subscription = Subscription::new("tester", &source).unwrap().with_binding("test.no.exchange", "k");
    let findings = broker.check(&subscription).await.unwrap();
    let places: Vec<_> = refused(&findings).iter().map(|finding| finding.place.clone()).collect();
    let dead = format!("queue {source}.tester.dead");
    assert_eq!(places, [format!("queue {source}"), dead, "exchange test.no.exchange".to_owned()]);
}

#[tokio::test]
async fn a_missing_binding_is_refused_with_the_command_that_mends_it() {
    let broker = broker(config()).await;
    let (exchange, source) = (unique("exchange"), unique("unbound"));
    let subscription = Subscription::new("tester", &source).unwrap().with_binding(&exchange, "order.created");
    let _queue = Queue::of(broker.clone(), subscription.clone());
    broker.declare(&subscription).await.unwrap();
    assert_eq!(broker.check(&subscription).await.unwrap(), []);
    management::unbind(&source, &exchange, "order.created");
    let findings = broker.check(&subscription).await.unwrap();
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.severity, Severity::Refuse);
    for part in [&exchange, &source, "order.created"] {
        assert!(finding.place.contains(part) && finding.mend.contains(part), "{finding}");
    }
    broker.declare(&subscription).await.unwrap();
    assert_eq!(broker.check(&subscription).await.unwrap(), []);
}

#[tokio::test]
async fn without_the_management_api_the_check_says_what_it_cannot_see() {
    let broker = broker(Config::new(&xtask::services::rabbitmq::url().unwrap()).unwrap()).await;
    let subscription = Subscription::new("tester", unique("unseen")).unwrap();
    let _queue = Queue::of(broker.clone(), subscription.clone());
    broker.declare(&subscription).await.unwrap();
    let findings = broker.check(&subscription).await.unwrap();
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.severity, Severity::Warn);
    assert!(finding.mend.contains("with_management"), "{finding}");
}

#[tokio::test]
async fn a_management_api_that_is_down_is_said_and_stops_nobody() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://guest:guest@{}", taken.local_addr().unwrap());
    drop(taken);
    let config = Config::new(&xtask::services::rabbitmq::url().unwrap()).unwrap();
    let broker = broker(config.with_management(&nobody).unwrap()).await;
    let subscription = Subscription::new("tester", unique("unasked")).unwrap();
    let _queue = Queue::of(broker.clone(), subscription.clone());
    broker.declare(&subscription).await.unwrap();
    let findings = broker.check(&subscription).await.unwrap();
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.severity, Severity::Warn);
    assert!(finding.what.contains("could not be asked"), "{finding}");
}

#[tokio::test]
async fn a_queue_that_exists_with_other_settings_is_an_error_with_the_brokers_words() {
    let broker = broker(config()).await;
    let subscription = Subscription::new("tester", unique("other")).unwrap();
    let _queue = Queue::of(broker.clone(), subscription.clone());
    management::queue(&subscription.source, &json!({ "x-queue-type": "quorum", "x-max-length": 5 }));
    match broker.declare(&subscription).await.unwrap_err() {
        BrokerError::Topology { place, reason, .. } => {
            assert!(place.contains(&subscription.source));
            assert!(reason.contains("x-max-length"), "{reason}");
        }
        error => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn limits_that_drop_confirmed_messages_are_refused() {
    for (argument, what) in [
        (json!({ "x-max-length": 5 }), "oldest of more than 5 messages"),
        (json!({ "x-message-ttl": 60_000 }), "older than 60000 ms"),
        (json!({ "x-expires": 600_000 }), "deleted with its messages when unused"),
        (json!({ "x-delivery-limit": 9 }), "after 9 deliveries"),
    ] {
        let broker = broker(config()).await;
        let subscription = Subscription::new("tester", unique("limits")).unwrap();
        let mut arguments = argument.clone();
        arguments["x-queue-type"] = "quorum".into();
        management::queue(&subscription.source, &arguments);
        find(&Queue::of(broker, subscription), Severity::Refuse, what).await;
    }
}

#[tokio::test]
async fn a_policy_that_comes_later_is_found_by_the_next_check() {
    let queue = Queue::new("policy").await;
    assert_eq!(queue.broker.check(&queue.subscription).await.unwrap(), []);
    let _policy = management::Policy::on(&queue.subscription.source, &json!({ "message-ttl": 3_600_000 }));
    let found = find(&queue, Severity::Refuse, "older than 3600000 ms").await;
    assert!(found.mend.contains(&queue.subscription.source), "{found}");
}

#[tokio::test]
async fn a_limit_that_rejects_publishes_is_accepted_and_nacks_what_is_too_much() {
    let broker = broker(config()).await;
    let subscription = Subscription::new("tester", unique("full")).unwrap();
    let _queue = Queue::of(broker.clone(), subscription.clone());
    let arguments = json!({ "x-queue-type": "quorum", "x-max-length": 10, "x-overflow": "reject-publish" });
    management::queue(&subscription.source, &arguments);
    let findings = broker.check(&subscription).await.unwrap();
    let places: Vec<_> = refused(&findings).iter().map(|finding| &finding.place).collect();
    assert_eq!(places, [&format!("queue {}.tester.dead", subscription.source)], "only what is missing");
}

#[tokio::test]
async fn a_transient_queue_is_refused() {
    let broker = broker(config().with_queue_type(QueueType::Classic)).await;
    let subscription = Subscription::new("tester", unique("transient")).unwrap();
    management::put(
        &format!("queues/%2f/{}", subscription.source),
        &json!({ "durable": false, "arguments": {} }),
    );
    find(&Queue::of(broker, subscription), Severity::Refuse, "not durable").await;
}

#[tokio::test]
async fn permissions_that_lack_are_refused() {
    let user = unique("user");
    management::put(&format!("users/{user}"), &json!({ "password": "p", "tags": "administrator" }));
    let allow = |read: &str, write: &str| {
        let permissions = json!({ "configure": ".*", "read": read, "write": write });
        management::put(&format!("permissions/%2f/{user}"), &permissions);
    };
    allow(".*", ".*");
    let config = config().with_credentials(&user, "p");
    let queue = Queue::with(config, "permitted", None).await;
    assert_eq!(queue.broker.check(&queue.subscription).await.unwrap(), []);
    allow("^other", "^other");
    let findings = queue.broker.check(&queue.subscription).await.unwrap();
    assert_eq!(refused(&findings).len(), 3, "{findings:?}");
    match queue.broker.source(&queue.subscription).await.err().unwrap() {
        BrokerError::Denied { reason, .. } => {
            assert!(reason.contains(&queue.subscription.source), "{reason}")
        }
        error => panic!("{error:?}"),
    }
    management::delete(&format!("users/{user}"));
}

#[tokio::test]
async fn names_beyond_255_bytes_are_refused_before_anything_is_sent() {
    let broker = broker(config()).await;
    let subscription = Subscription::new("tester", "q".repeat(250)).unwrap();
    assert_eq!(broker.dead_letter(&subscription).routing_key.len(), 250 + ".tester.dead".len());
    for result in [broker.declare(&subscription).await, broker.check(&subscription).await.map(|_| ())] {
        assert!(matches!(result, Err(BrokerError::Config(_))), "{result:?}");
    }
    assert!(broker.source(&subscription).await.is_err(), "the queue itself was not made either");
}

#[tokio::test]
async fn nothing_is_declared_by_looking() {
    let broker = broker(config()).await;
    let subscription = Subscription::new("tester", unique("looking")).unwrap();
    let _queue = Queue::of(broker.clone(), subscription.clone());
    for _ in 0..2 {
        assert_eq!(refused(&broker.check(&subscription).await.unwrap()).len(), 2);
        assert!(broker.source(&subscription).await.is_err());
    }
}

#[tokio::test]
async fn a_dead_letter_copy_of_a_message_is_whole_and_routed() {
    let queue = Queue::classic("dead").await;
    queue.publish(["poison"]).await;
    let mut source = queue.source().await;
    let delivery = one(&mut source).await;
    let class = aftercommit_core::FailureClass::Poison;
    let diagnostics = aftercommit_core::Diagnostics::new(queue.subscription.consumer.clone(), class, "bad");
    let letter = diagnostics.park(&delivery.message, queue.broker.dead_letter(&queue.subscription));
    queue.broker.publisher().await.unwrap().publish(letter).await.unwrap();
    ack(delivery).await.unwrap();
    nothing(&mut source).await;
    let mut dead = queue.broker.dead_letters(&queue.subscription).await.unwrap();
    let letter = one(&mut dead).await;
    assert_eq!(text(&letter), "poison");
    let header = letter.message.headers.get("aftercommit-failure-class").unwrap();
    assert_eq!(header.as_str(), Some("poison"));
}
