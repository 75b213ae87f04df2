//! Failures and starts, counted in commits of their own.

use std::sync::Arc;

use aftercommit_core::{BoxError, ConsumerName};
use aftercommit_inbox::{InboxStore, Session};

use super::cases;
use crate::store::scene::{CONSUMER, Done, Scene, ensure, id, ids};
use crate::store::stage::{Attempts, StoreStage};

cases! { "counter":
    failures_are_counted_with_their_times,
    failures_survive_the_rollback_before_them,
    counting_in_parallel_is_exact,
    keys_of_counters_are_apart,
    starts_are_counted,
    a_handled_message_is_not_started,
    what_is_forgotten_begins_anew,
    any_error_text_can_be_stored,
}

type Stage<S> = Arc<dyn StoreStage<S>>;

async fn failures_are_counted_with_their_times<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    let one = id("1")?;
    let first = session.record_failure(&scene.consumer, &one, "first").await?;
    ensure!(first.count == 1 && first.first_at == first.last_at, "the first failure is {first:?}");
    // The coarsest clock of a database in use ticks in milliseconds.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let second = session.record_failure(&scene.consumer, &one, "second").await?;
    ensure!(second.count == 2, "the second failure is {second:?}");
    ensure!(second.first_at == first.first_at, "the first time moved from {first:?} to {second:?}");
    ensure!(second.last_at > first.last_at, "the last time stayed: {second:?}");
    let rows = scene.stage.attempts().await?;
    let last_error = Some("second".to_owned());
    let expected =
        Attempts { consumer: CONSUMER.to_owned(), id: "1".to_owned(), failures: 2, starts: 0, last_error };
    ensure!(rows == [expected], "the table has {rows:?}");
    Ok(())
}

async fn failures_survive_the_rollback_before_them<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    session.rollback().await?;
    session.record_failure(&scene.consumer, &one.0[0], "it failed").await?;
    session.begin().await?;
    session.claim(&scene.consumer, &one.refs()).await?;
    session.rollback().await?;
    drop(session);
    let mut session = scene.store.open().await?;
    let failures = session.record_failure(&scene.consumer, &one.0[0], "again").await?;
    ensure!(failures.count == 2, "two failures were counted as {}", failures.count);
    Ok(())
}

async fn counting_in_parallel_is_exact<S: InboxStore>(stage: Stage<S>) -> Done {
    const TIMES: u32 = 10;
    let scene = Scene::open(stage).await?;
    let one = id("1")?;
    let lane = async || {
        let mut session = scene.store.open().await?;
        for _ in 0..TIMES {
            session.record_failure(&scene.consumer, &one, "in parallel").await?;
            session.record_start(&scene.consumer, &one).await?;
        }
        Ok::<_, BoxError>(())
    };
    let all = async { tokio::try_join!(lane(), lane(), lane(), lane()) };
    scene.within("four lanes have counted", all).await??;
    let rows = scene.stage.attempts().await?;
    let exact = rows.len() == 1 && rows[0].failures == 4 * TIMES && rows[0].starts == 4 * TIMES;
    ensure!(exact, "{} counts in parallel became {rows:?}", 4 * TIMES);
    Ok(())
}

async fn keys_of_counters_are_apart<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    for consumer in ["billing", "Billing", "mailer"] {
        let consumer = ConsumerName::new(consumer)?;
        for text in ["a", "A", "\u{e9}", "e"] {
            let failures = session.record_failure(&consumer, &id(text)?, "").await?;
            let starts = session.record_start(&consumer, &id(text)?).await?;
            ensure!((failures.count, starts) == (1, 1), "{consumer}/{text} shares its counters");
        }
    }
    Ok(())
}

async fn starts_are_counted<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    let one = id("1")?;
    for expected in 1..=3 {
        let starts = session.record_start(&scene.consumer, &one).await?;
        ensure!(starts == expected, "start {expected} was counted as {starts}");
    }
    session.record_failure(&scene.consumer, &one, "a failure is no start").await?;
    let starts = session.record_start(&scene.consumer, &one).await?;
    ensure!(starts == 4, "a failure changed the starts to {starts}");
    Ok(())
}

async fn a_handled_message_is_not_started<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    scene.handle(&mut session, &ids(&["1"])?).await?;
    let starts = session.record_start(&scene.consumer, &id("1")?).await?;
    ensure!(starts == 0, "a handled message was started for the {starts}th time");
    let rows = scene.stage.attempts().await?;
    ensure!(rows.is_empty(), "a handled message was counted: {rows:?}");
    Ok(())
}

async fn what_is_forgotten_begins_anew<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    for text in ["1", "2"] {
        session.record_failure(&scene.consumer, &id(text)?, "x").await?;
        session.record_start(&scene.consumer, &id(text)?).await?;
    }
    session.forget_attempts(&scene.consumer, &id("1")?).await?;
    session.forget_attempts(&scene.consumer, &id("never counted")?).await?;
    let anew = session.record_failure(&scene.consumer, &id("1")?, "x").await?;
    let kept = session.record_failure(&scene.consumer, &id("2")?, "x").await?;
    ensure!(anew.count == 1, "what was forgotten has {} failures", anew.count);
    ensure!(anew.first_at == anew.last_at, "what was forgotten still has its first time");
    ensure!(kept.count == 2, "forgetting one message changed another");
    let starts = session.record_start(&scene.consumer, &id("1")?).await?;
    ensure!(starts == 1, "starts were not forgotten: {starts}");
    Ok(())
}

/// H12: a NUL in a text is refused by PostgreSQL; the row that counts must not fail for it.
async fn any_error_text_can_be_stored<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    let texts = ["", "a\0b", "\0", "\u{1}\u{7f}\n", "'; --", &"\u{1f980}".repeat(50_000)];
    for (number, text) in texts.iter().enumerate() {
        let one = id(&number.to_string())?;
        let failures = session.record_failure(&scene.consumer, &one, text).await?;
        ensure!(failures.count == 1, "{number} was counted as {}", failures.count);
    }
    let rows = scene.stage.attempts().await?;
    let stored = |number: usize| {
        rows.iter().find(|row| row.id == number.to_string()).and_then(|row| row.last_error.as_deref())
    };
    ensure!(rows.len() == texts.len(), "{} of {} were stored", rows.len(), texts.len());
    ensure!(stored(1) == Some("a\\u{0}b"), "a NUL became {:?}", stored(1));
    ensure!(stored(5).is_some_and(|text| text.len() <= 1024), "a long text was stored as it is");
    Ok(())
}
