//! The one way out for what cannot be handled.

use std::sync::Arc;

use aftercommit_core::dead_letter::header;
use aftercommit_core::{BoxError, Diagnostics, FailureClass, Message, Outgoing, Redelivery};

use super::cases;
use super::message::{every_type, same};
use crate::broker::scene::{Scene, ack, body, ensure};
use crate::broker::stage::Stage;

cases! { "dead_letter":
    a_parked_message_is_read_back_exactly,
    looking_at_a_dead_letter_keeps_it,
    taking_a_dead_letter_removes_it,
    two_consumers_have_their_own [Copies],
}

type Done = Result<(), BoxError>;

fn letter(scene: &Scene, message: &Message) -> Outgoing {
    let diagnostics = Diagnostics::new(scene.subscription.consumer.clone(), FailureClass::Poison, "broken");
    diagnostics.park(message, scene.broker.dead_letter(&scene.subscription))
}

async fn park(scene: &Scene, message: &Message) -> Done {
    let sent = scene.publisher.publish(letter(scene, message));
    scene.within("the answer to a parking", sent).await??;
    Ok(())
}

async fn a_parked_message_is_read_back_exactly(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut message = Message::new(&b"\x00\xff{broken"[..]).with_id("evt-1").with_type("order.created");
    message.headers = every_type();
    let parked = letter(&scene, &message).message;
    park(&scene, &message).await?;
    let mut letters = scene.broker.dead_letters(&scene.subscription).await?;
    let delivery = scene.take_one(&mut letters).await?;
    let mut came = Message::clone(&delivery.message);
    let expected = scene.stage.expected(&parked);
    for name in [header::CONSUMER, header::CLASS, header::ERROR, header::ATTEMPTS, header::EVENT_TYPE] {
        let (wanted, found) = (expected.headers.get(name), came.headers.get(name));
        ensure!(wanted == found, "{name} should be {wanted:?} and is {found:?}");
    }
    let mut foreign = expected.clone();
    for headers in [&mut foreign.headers, &mut came.headers] {
        headers.retain(|name, _| !name.starts_with(aftercommit_core::dead_letter::HEADER_PREFIX));
    }
    same(&foreign, &came)?;
    ack(delivery).await?;
    Ok(())
}

async fn looking_at_a_dead_letter_keeps_it(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    park(&scene, &Message::new("look")).await?;
    for _ in 0..3 {
        let mut letters = scene.broker.dead_letters(&scene.subscription).await?;
        let delivery = scene.take_one(&mut letters).await?;
        delivery.give_back(Redelivery::Now).await?;
        let delivery = scene.take_one(&mut letters).await?;
        ensure!(body(&delivery) == "look", "{} came", body(&delivery));
        scene.close(letters).await?;
    }
    Ok(())
}

async fn taking_a_dead_letter_removes_it(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    park(&scene, &Message::new("first")).await?;
    park(&scene, &Message::new("second")).await?;
    let mut letters = scene.broker.dead_letters(&scene.subscription).await?;
    for delivery in scene.take(&mut letters, 2).await? {
        if body(&delivery) == "first" {
            ack(delivery).await?;
        } else {
            delivery.give_back(Redelivery::Now).await?;
        }
    }
    scene.close(letters).await?;
    let mut letters = scene.broker.dead_letters(&scene.subscription).await?;
    let left = scene.take_one(&mut letters).await?;
    ensure!(body(&left) == "second", "first was taken, {} is left", body(&left));
    scene.nothing_comes(&mut letters).await
}

async fn two_consumers_have_their_own(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let other = scene.stage.subscription("second", "topic")?.with_prefetch(20)?;
    scene.broker.declare(&other).await?;
    park(&scene, &Message::new("of the first")).await?;
    let mut others = scene.broker.dead_letters(&other).await?;
    scene.nothing_comes(&mut others).await?;
    let mut own = scene.broker.dead_letters(&scene.subscription).await?;
    let delivery = scene.take_one(&mut own).await?;
    ensure!(body(&delivery) == "of the first", "{} came", body(&delivery));
    Ok(())
}
