//! At least once, in order, bounded.

use std::sync::Arc;

use aftercommit_core::{BoxError, Delay, Message, Order, Redelivery};

use super::cases;
use crate::broker::scene::{Scene, ack, body, ensure, numbers};
use crate::broker::stage::Stage;

cases! { "delivery":
    every_message_arrives_once,
    order_holds [Order],
    at_most_what_was_asked_for,
    a_batch_is_not_waited_for,
    prefetch_bounds_what_is_out,
    two_processes_share_a_source [SharedSource],
    two_consumers_each_get_a_copy [Copies],
}

type Done = Result<(), BoxError>;

/// Duplicates are not removed before counting: where nothing failed there must be none.
async fn every_message_arrives_once(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut source = scene.source().await?;
    scene.send_numbers(0..200).await?;
    let mut bodies = Vec::new();
    while bodies.len() < 200 {
        let delivery = scene.take_one(&mut source).await?;
        ensure!(!delivery.is_lost(), "a fresh delivery says that it is lost");
        bodies.push(body(&delivery));
        ack(delivery).await?;
    }
    scene.nothing_comes(&mut source).await?;
    scene.close_with(source, 0).await?;
    let mut expected = numbers(0..200);
    expected.sort();
    bodies.sort();
    ensure!(bodies == expected, "not each message once: {bodies:?}");
    Ok(())
}

async fn order_holds(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut source = scene.source().await?;
    let order = source.capabilities().order;
    ensure!(order != Order::None, "the fixture says that there is an order, the source promises none");
    for number in 0..100_u32 {
        let key = if order == Order::PerKey { (number % 3).to_string() } else { "key".to_owned() };
        scene.send(Message::new(number.to_string()).with_key(key)).await?;
    }
    let mut got: Vec<(Option<bytes::Bytes>, u32)> = Vec::new();
    while got.len() < 100 {
        for delivery in scene.within("more messages", source.recv(7)).await?? {
            got.push((delivery.message.key.clone(), body(&delivery).parse()?));
            ack(delivery).await?;
        }
    }
    for (at, (key, number)) in got.iter().enumerate() {
        let overtaken = got[..at].iter().find(|(other, earlier)| other == key && earlier > number);
        ensure!(overtaken.is_none(), "{number} came after {overtaken:?}");
    }
    Ok(())
}

async fn at_most_what_was_asked_for(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut source = scene.source().await?;
    scene.send_numbers(0..10).await?;
    let mut left = 10;
    for max in [3, 1, 0, 2] {
        let batch = scene.within("a batch", source.recv(max)).await??;
        ensure!(batch.len() <= max.max(1), "{} deliveries, {max} were asked for", batch.len());
        left -= batch.len().min(left);
    }
    while left > 0 {
        let batch = scene.within("the rest", source.recv(2)).await??;
        left -= batch.len().min(left);
    }
    Ok(())
}

async fn a_batch_is_not_waited_for(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut source = scene.source().await?;
    scene.send_numbers(0..1).await?;
    let batch = scene.within("one message, though ten were asked for", source.recv(10)).await??;
    ensure!(batch.len() == 1, "{} deliveries of one message", batch.len());
    Ok(())
}

/// With nothing settled never more than the prefetch is out, as the client and as the broker
/// count it; each settlement makes room for one.
async fn prefetch_bounds_what_is_out(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::with_prefetch(stage, 4).await?;
    scene.send_numbers(0..12).await?;
    let mut source = scene.source().await?;
    ensure!(source.capabilities().prefetch == 4, "the capabilities name {}", source.capabilities().prefetch);
    let mut out = scene.take(&mut source, 4).await?;
    scene.nothing_comes(&mut source).await?;
    let unsettled = scene.depth().await?.unsettled;
    ensure!(
        unsettled <= 4,
        "the broker has {unsettled} messages out, the client must not buffer more than 4"
    );
    if let Some(delivery) = out.pop() {
        ack(delivery).await?;
    }
    out.extend(scene.take(&mut source, 1).await?);
    scene.nothing_comes(&mut source).await?;
    if let (Delay::Held { longest }, Some(delivery)) = (source.capabilities().delay, out.pop())
        && !longest.is_zero()
    {
        delivery.give_back(Redelivery::After(longest)).await?;
        scene.nothing_comes(&mut source).await?;
    }
    scene.close_with(source, 11).await
}

/// Each takes what its prefetch allows; nobody gets what the other has.
async fn two_processes_share_a_source(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::with_prefetch(stage, 5).await?;
    let other = scene.stage.connect().await?;
    let mut one = scene.source().await?;
    let mut two = other.source(&scene.subscription).await?;
    scene.send_numbers(0..10).await?;
    let first = scene.take(&mut one, 5).await?;
    let second = scene.take(&mut two, 5).await?;
    let mut bodies: Vec<_> = first.iter().chain(&second).map(body).collect();
    bodies.sort();
    ensure!(bodies == numbers(0..10), "two processes got {bodies:?} of 10 messages");
    for delivery in first.into_iter().chain(second) {
        ack(delivery).await?;
    }
    scene.nothing_comes(&mut two).await?;
    scene.close(two).await?;
    scene.close_with(one, 0).await
}

async fn two_consumers_each_get_a_copy(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let other = scene.stage.subscription("second", "topic")?.with_prefetch(20)?;
    scene.broker.declare(&other).await?;
    scene.send_numbers(0..3).await?;
    for subscription in [&scene.subscription, &other] {
        let mut source = scene.broker.source(subscription).await?;
        let mut bodies = scene.consume(&mut source, 3).await?;
        bodies.sort();
        ensure!(bodies == numbers(0..3), "{} got {bodies:?}", subscription.consumer);
        scene.nothing_comes(&mut source).await?;
    }
    Ok(())
}
