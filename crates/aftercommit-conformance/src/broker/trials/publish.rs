//! Publishing: Ok is a positive answer, and the right one.

use std::sync::Arc;

use aftercommit_core::{BoxError, Destination, Message, Outgoing, PublishError, Receipt};
use futures_util::future::{join, join_all};

use super::cases;
use crate::broker::scene::{Scene, ensure, numbers, pause};
use crate::broker::stage::Stage;

cases! { "publish":
    ok_means_kept,
    one_publish_is_one_copy,
    unroutable_is_named [Unroutable],
    a_missing_destination_refuses_for_now [Missing],
    a_full_destination_refuses_for_now [Full],
    too_large_is_named [SizeLimit],
    each_publish_gets_its_own_answer [Unroutable],
    a_bad_publish_harms_no_other [Missing],
    a_publish_ends_by_its_deadline [Stall],
    a_lost_answer_is_unknown_and_not_sent_again [Stall, Cut],
    publishing_goes_on_after_a_cut [Cut],
    what_is_confirmed_survives_a_restart [Restart],
}

type Done = Result<(), BoxError>;
type Answer = Result<Receipt, PublishError>;

async fn publish(scene: &Scene, to: &Destination, body: impl Into<bytes::Bytes>) -> Result<Answer, BoxError> {
    let sent = scene.publisher.publish(Outgoing::new(to.clone(), Message::new(body)));
    scene.within("the answer to a publish", sent).await
}

async fn ok_means_kept(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    for sent in 1..=5 {
        let receipt = scene.send(Message::new("kept")).await?;
        ensure!(
            receipt.destination == scene.to,
            "sent to {}, the receipt says {}",
            scene.to,
            receipt.destination
        );
        let total = scene.depth().await?.total();
        ensure!(total >= sent, "{sent} messages are confirmed, {total} are there");
    }
    Ok(())
}

async fn one_publish_is_one_copy(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..50).await?;
    scene.until_total(50).await
}

async fn unroutable_is_named(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let nowhere = scene.stage.unroutable().await?;
    let answer = publish(&scene, &nowhere, "lost").await?;
    ensure!(
        matches!(&answer, Err(PublishError::Unroutable { destination }) if *destination == nowhere),
        "no queue is bound, and the answer was {answer:?}"
    );
    scene.send(Message::new("next")).await?;
    Ok(())
}

async fn refused_for_now(scene: &Scene, to: &Destination) -> Done {
    let answer = publish(scene, to, "refused").await?;
    ensure!(
        matches!(&answer, Err(PublishError::Refused { later: true, destination, .. }) if destination == to),
        "it cannot be taken now but may be later, and the answer was {answer:?}"
    );
    scene.send(Message::new("next")).await?;
    scene.until_total(1).await
}

async fn a_missing_destination_refuses_for_now(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    refused_for_now(&scene, &scene.stage.missing()).await
}

async fn a_full_destination_refuses_for_now(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let full = scene.stage.full().await?;
    refused_for_now(&scene, &full).await
}

async fn too_large_is_named(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let answer = publish(&scene, &scene.to, vec![0; scene.stage.too_large()]).await?;
    ensure!(matches!(answer, Err(PublishError::TooLarge { .. })), "the body is too large: {answer:?}");
    scene.send(Message::new("next")).await?;
    scene.until_total(1).await
}

/// A hundred at once, no ids, all bodies alike: nothing but the publish itself tells them apart.
async fn each_publish_gets_its_own_answer(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let nowhere = scene.stage.unroutable().await?;
    let destinations: Vec<_> =
        (0..100).map(|number| if number % 3 == 1 { &nowhere } else { &scene.to }).collect();
    let answers = join_all(destinations.iter().map(|to| publish(&scene, to, "alike"))).await;
    for (to, answer) in destinations.into_iter().zip(answers) {
        let answer = answer?;
        let right = match &answer {
            Ok(receipt) => *to == scene.to && receipt.destination == *to,
            Err(PublishError::Unroutable { destination }) => *to == nowhere && destination == to,
            Err(_) => false,
        };
        ensure!(right, "the publish to {to} was answered {answer:?}");
    }
    scene.until_total(67).await
}

/// Where one bad message closes the channel, the others may end as unknown, but never as refused,
/// and what was confirmed is there.
async fn a_bad_publish_harms_no_other(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let missing = scene.stage.missing();
    let to = |number: u32| if number == 7 { &missing } else { &scene.to };
    let answers = join_all((0..20).map(|number| publish(&scene, to(number), number.to_string()))).await;
    let (mut kept, mut open) = (0, 0);
    for (number, answer) in (0..20).zip(answers) {
        match answer? {
            Ok(_) if number != 7 => kept += 1,
            Err(PublishError::Refused { .. }) if number == 7 => {}
            Err(PublishError::Unknown { .. }) if number != 7 => open += 1,
            answer => return Err(format!("publish {number} of 20, of which 7 is bad: {answer:?}").into()),
        }
    }
    let next = async {
        loop {
            match publish(&scene, &scene.to, "next").await? {
                Ok(_) => return Ok::<_, BoxError>(()),
                Err(PublishError::Unknown { .. }) => pause().await,
                Err(error) => return Err(error.into()),
            }
        }
    };
    scene.within("the publisher to serve the next call", next).await??;
    let total = scene.depth().await?.total();
    ensure!(total > kept, "{kept} and one more were confirmed, {total} are there");
    ensure!(open > 0 || total == kept + 1, "{kept} and one more were confirmed, {total} are there");
    Ok(())
}

async fn a_publish_ends_by_its_deadline(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.stage.stall().await?;
    let waiting = publish(&scene, &scene.to, "unanswered");
    let passing = async {
        pause().await;
        scene.stage.pass(scene.stage.publish_deadline()).await;
    };
    let (answer, ()) = join(waiting, passing).await;
    scene.stage.go_on().await?;
    let answer = answer?;
    ensure!(matches!(answer, Err(PublishError::Unknown { .. })), "there was no answer, but {answer:?}");
    serves_again(&scene, 1).await
}

async fn a_lost_answer_is_unknown_and_not_sent_again(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.stage.stall().await?;
    let waiting = publish(&scene, &scene.to, "unanswered");
    let cutting = async {
        pause().await;
        scene.stage.cut().await
    };
    let (answer, cut) = join(waiting, cutting).await;
    cut?;
    scene.stage.go_on().await?;
    let answer = answer?;
    ensure!(matches!(answer, Err(PublishError::Unknown { .. })), "the answer was lost, but {answer:?}");
    serves_again(&scene, 1).await
}

/// The publisher takes the next message, and of those without an answer there is one copy at most.
async fn serves_again(scene: &Scene, unanswered: u64) -> Done {
    let next = async {
        let mut tries = 0;
        loop {
            tries += 1;
            match publish(scene, &scene.to, "next").await? {
                Ok(_) => return Ok::<u64, BoxError>(tries),
                Err(PublishError::Unknown { .. }) => pause().await,
                Err(error) => return Err(error.into()),
            }
        }
    };
    let tries = scene.within("the publisher to serve the next call", next).await??;
    let total = scene.depth().await?.total();
    ensure!(total >= 1, "a publish was confirmed and is not there");
    ensure!(
        total <= unanswered + tries,
        "{total} copies of {unanswered} unanswered and {tries} more publishes"
    );
    Ok(())
}

async fn publishing_goes_on_after_a_cut(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send(Message::new("before")).await?;
    scene.stage.cut().await?;
    serves_again(&scene, 1).await
}

async fn what_is_confirmed_survives_a_restart(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..20).await?;
    scene.stage.restart().await?;
    let mut source = scene.within("a source after the restart", reopened(&scene)).await?;
    let mut bodies = scene.consume(&mut source, 20).await?;
    let mut expected = numbers(0..20);
    expected.sort();
    bodies.sort();
    ensure!(bodies == expected, "of 20 confirmed messages these survived: {bodies:?}");
    scene.close_with(source, 0).await
}

async fn reopened(scene: &Scene) -> Box<dyn aftercommit_core::Source> {
    loop {
        if let Ok(source) = scene.source().await {
            return source;
        }
        pause().await;
    }
}
