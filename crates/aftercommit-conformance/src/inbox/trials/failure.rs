//! Handlers that fail, in every way.

use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use aftercommit_core::dead_letter::header;
use aftercommit_core::{Delay, HeaderValue, Message, RetryPolicy};
use aftercommit_inbox::{InboxStore, Outcome, Router, metric};

use super::text;
use crate::faults::{Fault, Script, Seam, Side};
use crate::inbox::probe::{Single, Step};
use crate::inbox::scene::{CONSUMER, Done, Scene, ensure, id, ids, message, until};

super::cases! { "failure":
    attempts_used_up_are_parked_with_diagnostics,
    the_original_outlives_the_answer_about_its_letter,
    a_letter_without_an_answer_is_sent_again,
    poison_is_parked_at_once,
    an_unknown_type_or_version_is_parked_at_once,
    an_invariant_is_parked_at_once,
    a_panic_is_a_failed_attempt,
    a_handler_beyond_its_deadline_is_a_failed_attempt,
    a_swallowed_sql_error_is_never_confirmed_as_applied,
    a_raw_commit_is_never_confirmed_as_applied,
    a_raw_rollback_is_never_confirmed_as_applied,
    one_failure_of_fifty_costs_one_message,
    one_swallowed_error_of_fifty_costs_one_message,
    one_panic_of_fifty_costs_one_message,
    a_batch_handler_is_halved_down_to_the_bad_message,
    a_parked_id_that_comes_again_is_handled_anew,
    infrastructure_costs_no_attempt,
    h26_an_always_failing_message_is_bounded_by_its_delays,
    messages_that_wait_hold_up_no_other_or_it_says_so,
}

async fn attempts_used_up_are_parked_with_diagnostics<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Fail);
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(1))).await?;
    let mut sent = message(&id(1)).with_type("order.created").with_key("order-1");
    sent.aggregate_id = Some("order-1".into());
    sent.headers.append("foreign", HeaderValue::Bool(true));
    let before = OffsetDateTime::now_utc() - Duration::from_secs(5);
    scene.send(sent.clone()).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Parked, 1)?;
    player.counted(Outcome::Retried, 2)?;
    player.counted(Outcome::Applied, 0)?;
    scene.stop(player).await?;
    ensure!(probe.calls_of(&id(1)) == 3, "{} calls", probe.calls_of(&id(1)));
    let letter = scene.letters(1).await?.remove(0);
    let expected = scene.stage.expected(&sent);
    ensure!(
        letter.id == expected.id && letter.body == expected.body && letter.key == expected.key,
        "{letter:?}"
    );
    ensure!(letter.headers.get("foreign") == Some(&HeaderValue::Bool(true)), "a foreign header is gone");
    for (name, value) in [
        (header::CONSUMER, CONSUMER),
        (header::MESSAGE_ID, &id(1)),
        (header::EVENT_TYPE, "order.created"),
        (header::AGGREGATE_ID, "order-1"),
        (header::CLASS, "transient"),
    ] {
        let found = text(&letter, name);
        ensure!(found == value, "{name} is {found:?}");
    }
    ensure!(letter.headers.get(header::ATTEMPTS).and_then(HeaderValue::as_i64) == Some(3), "attempts");
    ensure!(!text(&letter, header::DESTINATION).is_empty(), "no original destination");
    let first = OffsetDateTime::parse(&text(&letter, header::FIRST_FAILED_AT), &Rfc3339)?;
    let last = OffsetDateTime::parse(&text(&letter, header::LAST_FAILED_AT), &Rfc3339)?;
    let after = OffsetDateTime::now_utc() + Duration::from_secs(5);
    ensure!(before < first && first < last && last < after, "failed from {first} to {last}");
    scene.each_once(ids(0..0)).await?;
    let failures = scene.ledger.failures().await?;
    ensure!(failures == 0, "{failures} failures are still counted after the parking");
    Ok(())
}

async fn the_original_outlives_the_answer_about_its_letter<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Invariant);
    let script = Script::record().at(Seam::Publish, Side::After, 0, Fault::Delay);
    let player = scene.start_scripted(scene.consumer(&probe).await?, &script).await?;
    scene.send(message(&id(1))).await?;
    scene.within("the letter is published", script.delayed()).await?;
    tokio::time::sleep(scene.stage.quiet()).await;
    let depth = scene.depth().await?;
    ensure!(depth.total() == 1, "the original is gone before its letter was confirmed");
    script.release();
    scene.until_empty().await?;
    scene.stop(player).await?;
    scene.letters(1).await.map(drop)
}

/// The copy exists and nobody knows: a second one is allowed, a lost original is not.
async fn a_letter_without_an_answer_is_sent_again<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Invariant);
    let script = Script::record().at(Seam::Publish, Side::After, 0, Fault::LoseAnswer);
    let player = scene.start_scripted(scene.consumer(&probe).await?, &script).await?;
    scene.send(message(&id(1))).await?;
    scene.until_empty().await?;
    scene.stop(player).await?;
    for letter in scene.letters(2).await? {
        ensure!(letter.id.as_deref() == Some(id(1).as_bytes()), "the copies have different ids");
    }
    Ok(())
}

async fn poison_is_parked_at_once<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    scene.send_ids(0..3).await?;
    scene.send(Message::new("poison").with_id("bad")).await?;
    scene.send_ids(3..6).await?;
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Retried, 0)?;
    scene.stop(player).await?;
    ensure!(probe.calls_of("bad") == 0, "the handler was called for what does not decode");
    let letter = scene.letters(1).await?.remove(0);
    ensure!(text(&letter, header::CLASS) == "poison", "the class is {}", text(&letter, header::CLASS));
    ensure!(text(&letter, header::ERROR) == "broken\\u{0} body", "{}", text(&letter, header::ERROR));
    ensure!(letter.headers.get(header::ATTEMPTS).and_then(HeaderValue::as_i64) == Some(1), "attempts");
    ensure!(letter.body.as_deref() == Some(b"poison"), "the body is {:?}", letter.body);
    scene.each_once(ids(0..6)).await
}

async fn an_unknown_type_or_version_is_parked_at_once<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let router = Router::new().on("order.created", 1, Single(std::sync::Arc::clone(&probe)));
    let player = scene.start(scene.consumer_of(router, &Script::record()).await?).await?;
    for (name, event_type, version) in [
        ("good", Some("order.created"), Some("1")),
        ("no type", None, Some("1")),
        ("type", Some("order.eaten"), Some("1")),
        ("no version", Some("order.created"), None),
        ("version", Some("order.created"), Some("9")),
    ] {
        let mut message = message(name);
        message.event_type = event_type.map(str::to_owned);
        message.schema_version = version.map(str::to_owned);
        scene.send(message).await?;
    }
    scene.until_empty().await?;
    scene.stop(player).await?;
    for letter in scene.letters(4).await? {
        ensure!(text(&letter, header::CLASS) == "poison", "{letter:?}");
        let error = text(&letter, header::ERROR);
        ensure!(error.contains("handler for") || error.contains("has no"), "the reason is {error:?}");
    }
    scene.each_once(["good"]).await
}

async fn an_invariant_is_parked_at_once<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|call| if call.id == id(3) { Step::Invariant } else { Step::Apply });
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.send_ids(0..6).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Retried, 0)?;
    scene.stop(player).await?;
    let letter = scene.letters(1).await?.remove(0);
    ensure!(text(&letter, header::CLASS) == "invariant", "{letter:?}");
    ensure!(text(&letter, header::ERROR) == "no such order", "{letter:?}");
    scene.each_once(ids(0..6).into_iter().filter(|known| *known != id(3))).await
}

async fn a_panic_is_a_failed_attempt<S: InboxStore>(scene: Scene<S>) -> Done {
    fails_once(scene, Step::Panic, None).await
}

async fn a_handler_beyond_its_deadline_is_a_failed_attempt<S: InboxStore>(scene: Scene<S>) -> Done {
    // Long enough for the others' calls where the machine is slow.
    fails_once(scene, Step::Hang, Some(Duration::from_secs(2))).await
}

/// One message whose first call does not succeed among others that do, each alone.
async fn fails_once<S: InboxStore>(scene: Scene<S>, how: Step, deadline: Option<Duration>) -> Done {
    let step = move |bad: bool| if bad { how.clone() } else { Step::Apply };
    let probe = scene.probe(move |call| step(call.id == id(2) && call.nth == 1));
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(1).deadline(deadline));
    let player = scene.start(cast).await?;
    scene.send_ids(0..6).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 6)?;
    player.counted(Outcome::Retried, 1)?;
    ensure!(player.health.is_alive(), "{:?}", player.health.not_alive());
    scene.stop(player).await?;
    scene.each_once(ids(0..6)).await?;
    scene.no_letters().await
}

async fn a_swallowed_sql_error_is_never_confirmed_as_applied<S: InboxStore>(scene: Scene<S>) -> Done {
    never_applied(scene, Step::Swallow, 0).await
}

/// The handler's COMMIT may have taken the claim along, effect and all: then it is known.
async fn a_raw_commit_is_never_confirmed_as_applied<S: InboxStore>(scene: Scene<S>) -> Done {
    never_applied(scene, Step::Raw("COMMIT"), 1).await
}

async fn a_raw_rollback_is_never_confirmed_as_applied<S: InboxStore>(scene: Scene<S>) -> Done {
    never_applied(scene, Step::Raw("ROLLBACK"), 0).await
}

async fn never_applied<S: InboxStore>(scene: Scene<S>, how: Step, most_effects: usize) -> Done {
    let step = move |bad: bool| if bad { how.clone() } else { Step::Apply };
    let probe = scene.probe(move |call| step(call.id == "bad"));
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(1))).await?;
    scene.send_ids(0..3).await?;
    scene.send(message("bad")).await?;
    scene.send_ids(3..6).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 6)?;
    scene.stop(player).await?;
    let effects = scene.ledger.effects().await?;
    let bad = effects.iter().filter(|effect| effect.id == b"bad").count();
    ensure!(bad <= most_effects, "{bad} effects of a handler that broke its transaction");
    // Not lost either: what has no effect has a letter.
    scene.letters(1 - bad).await?;
    let ids = ids(0..6).into_iter().chain((0..bad).map(|_| "bad".to_owned()));
    scene.each_once(ids).await
}

async fn one_failure_of_fifty_costs_one_message<S: InboxStore>(scene: Scene<S>) -> Done {
    one_of_fifty(scene, Step::Fail).await
}

async fn one_swallowed_error_of_fifty_costs_one_message<S: InboxStore>(scene: Scene<S>) -> Done {
    one_of_fifty(scene, Step::Swallow).await
}

async fn one_panic_of_fifty_costs_one_message<S: InboxStore>(scene: Scene<S>) -> Done {
    one_of_fifty(scene, Step::Panic).await
}

async fn one_of_fifty<S: InboxStore>(scene: Scene<S>, how: Step) -> Done {
    let step = move |bad: bool| if bad { how.clone() } else { Step::Apply };
    let probe = scene.probe(move |call| step(call.id == id(23)));
    scene.send_ids(0..50).await?;
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.lanes(1))).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 49)?;
    player.counted(Outcome::Retried, 2)?;
    player.counted(Outcome::Parked, 1)?;
    player.counted(Outcome::Duplicate, 0)?;
    scene.stop(player).await?;
    let letter = scene.letters(1).await?.remove(0);
    ensure!(letter.id.as_deref() == Some(id(23).as_bytes()), "parked was {:?}", letter.id);
    ensure!(letter.headers.get(header::ATTEMPTS).and_then(HeaderValue::as_i64) == Some(3), "attempts");
    scene.each_once(ids(0..50).into_iter().filter(|known| *known != id(23))).await
}

async fn a_batch_handler_is_halved_down_to_the_bad_message<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|call| if call.id == id(7) { Step::Invariant } else { Step::Apply });
    scene.send_ids(0..16).await?;
    let cast = scene.batch_consumer(&probe).await?.set(|consumer| consumer.lanes(1));
    let player = scene.start(cast).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 15)?;
    player.counted(Outcome::Parked, 1)?;
    scene.stop(player).await?;
    let batches = probe.batches();
    ensure!(batches.iter().any(|size| *size > 1), "never more than one message in a call: {batches:?}");
    ensure!(batches.contains(&1), "the bad message was never alone: {batches:?}");
    scene.letters(1).await?;
    scene.each_once(ids(0..16).into_iter().filter(|known| *known != id(7))).await
}

/// A parked message is not handled: the inbox does not hold it, and its attempts begin anew.
async fn a_parked_id_that_comes_again_is_handled_anew<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|call| if call.nth == 1 { Step::Invariant } else { Step::Apply });
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(1))).await?;
    scene.send(message(&id(1))).await?;
    scene.until_empty().await?;
    for _ in 0..2 {
        scene.send(message(&id(1))).await?;
        scene.until_empty().await?;
    }
    player.counted(Outcome::Parked, 1)?;
    player.counted(Outcome::Applied, 1)?;
    player.counted(Outcome::Duplicate, 1)?;
    scene.stop(player).await?;
    scene.letters(1).await?;
    scene.each_once(ids(1..2)).await
}

async fn infrastructure_costs_no_attempt<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|call| if call.nth < 6 { Step::Infrastructure } else { Step::Apply });
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.max_batch(1))).await?;
    scene.send(message(&id(1))).await?;
    scene.until_complaint(&player, "database").await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 1)?;
    player.counted(Outcome::Retried, 0)?;
    scene.until_ready(&player).await?;
    scene.stop(player).await?;
    let failures = scene.ledger.failures().await?;
    ensure!(failures == 0, "{failures} attempts were spent");
    scene.each_once(ids(1..2)).await
}

async fn h26_an_always_failing_message_is_bounded_by_its_delays<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|call| if call.id == "bad" { Step::Fail } else { Step::Apply });
    let delay = Duration::from_millis(500);
    let policy = RetryPolicy::new([delay; 100])?;
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.retry(policy).max_batch(1));
    let player = scene.start(cast).await?;
    scene.send(message("bad")).await?;
    for number in 0..60 {
        scene.send(message(&id(number))).await?;
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    scene.until_effects(60).await?;
    let redelivered = player.tally.count(metric::MESSAGES, "outcome=retried;");
    scene.stop(player).await?;
    let starts: Vec<_> =
        probe.calls().into_iter().filter(|call| call.id == "bad").map(|call| call.at).collect();
    ensure!(starts.len() >= 2, "it came {} times", starts.len());
    ensure!(redelivered <= u64::try_from(starts.len())?, "more retries than calls");
    for pair in starts.windows(2) {
        let waited = pair[1].saturating_sub(pair[0]);
        ensure!(waited >= delay.mul_f64(0.9), "it came again after {waited:?}");
    }
    scene.each_once(ids(0..60)).await
}

/// Where the client holds them, they take the places of the prefetch: then nothing else comes, and the consumer is not
/// ready and says why. Where the broker keeps them, others are handled meanwhile.
async fn messages_that_wait_hold_up_no_other_or_it_says_so<S: InboxStore>(scene: Scene<S>) -> Done {
    const PLACES: u8 = 6;
    let probe = scene.probe(|call| if call.id != "well" && call.nth == 1 { Step::Fail } else { Step::Apply });
    let policy = RetryPolicy::new([scene.stage.delay() * 2])?;
    let cast = scene.consumer(&probe).await?.set(|consumer| consumer.retry(policy).lanes(1).max_batch(1));
    let broker = scene.stage.connect().await?;
    let subscription = scene.subscription.clone().with_prefetch(PLACES.into())?;
    let held = matches!(broker.source(&subscription).await?.capabilities().delay, Delay::Held { .. });
    let player = scene.start_on(cast, broker, subscription).await?;
    scene.send_ids(0..PLACES.into()).await?;
    scene
        .within("all have failed", until(|| player.tally.outcome(Outcome::Retried) == u64::from(PLACES)))
        .await?;
    scene.send(message("well")).await?;
    if held {
        scene.until_complaint(&player, "prefetch").await?;
        ensure!(player.health.is_alive(), "it heals by itself");
        scene.stage.pass(scene.stage.delay() * 2).await;
    } else {
        scene.until_effects(1).await?;
        scene.stage.pass(scene.stage.delay() * 2).await;
    }
    scene.until_empty().await?;
    scene.until_ready(&player).await?;
    scene.stop(player).await?;
    scene.each_once(ids(0..PLACES.into()).into_iter().chain(["well".to_owned()])).await
}
