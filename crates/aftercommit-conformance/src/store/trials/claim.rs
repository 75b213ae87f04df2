//! Who handles what: each id once per consumer, byte by byte, whoever asks at the same time.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{BoxError, ConsumerName};
use aftercommit_inbox::{InboxStore, Session};

use super::cases;
use crate::store::scene::{CONSUMER, Done, Handled, Ids, Scene, ensure, ids, numbers};
use crate::store::stage::{Act, StoreStage};

cases! { "claim":
    the_second_claim_is_a_duplicate,
    each_id_gets_its_own_answer,
    keys_compare_byte_by_byte,
    consumers_are_apart,
    any_text_is_an_id,
    any_number_of_ids_is_one_claim,
    a_duplicate_leaves_the_transaction_alive,
    a_duplicate_waits_for_the_commit,
    a_waiting_claim_takes_over_after_a_rollback,
    same_ids_in_parallel_end_once_each,
}

type Stage<S> = Arc<dyn StoreStage<S>>;

async fn the_second_claim_is_a_duplicate<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.claimed(&one).await?;
    scene.finish(&mut session, &one).await?;
    session.begin().await?;
    let again = session.claim(&scene.consumer, &one.refs()).await?;
    ensure!(again == [false], "a handled id was answered {again:?}");
    session.rollback().await?;
    scene.expect_claims(&one).await
}

async fn each_id_gets_its_own_answer<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    scene.handle(&mut session, &ids(&["b", "d", "e"])?).await?;
    session.begin().await?;
    let answers = session.claim(&scene.consumer, &ids(&["a", "b", "c", "d", "e", "f"])?.refs()).await?;
    ensure!(answers == [true, false, true, false, false, true], "answers are {answers:?}");
    Ok(session.rollback().await?)
}

/// H01.
async fn keys_compare_byte_by_byte<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let pairs = [
        ["evt-4qD329Bz", "evt-4qd329bz"],
        ["caf\u{e9}-1", "cafe-1"],
        ["caf\u{e9}-2", "cafe\u{301}-2"],
        ["x", "x "],
        ["x-", "x\u{ad}-"],
        ["\u{df}", "ss"],
        ["1", "01"],
        ["\u{131}", "i"],
    ];
    for consumer in [CONSUMER, "Billing", "b\u{ed}lling", "billing "] {
        let consumer = ConsumerName::new(consumer)?;
        for id in pairs.as_flattened() {
            let one = ids(&[id])?;
            let mut session = scene.begun().await?;
            let ours = session.claim(&consumer, &one.refs()).await?;
            ensure!(ours == [true], "{id:?} of {consumer} was taken for another");
            session.prove(&consumer, &one.refs()).await?;
            session.commit().await?;
        }
    }
    let rows = scene.stage.claims().await?.len();
    ensure!(rows == 4 * 16, "{rows} rows for 64 keys");
    Ok(())
}

/// H04.
async fn consumers_are_apart<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    for consumer in ["billing", "mailer"] {
        let consumer = ConsumerName::new(consumer)?;
        for expected in [true, false] {
            let mut session = scene.begun().await?;
            let ours = session.claim(&consumer, &one.refs()).await?;
            ensure!(ours == [expected], "{consumer} was answered {ours:?}");
            let held = if expected { one.refs() } else { Vec::new() };
            session.prove(&consumer, &held).await?;
            session.commit().await?;
        }
    }
    Ok(())
}

async fn any_text_is_an_id<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let odd = ids(&[
        "{",
        "}",
        "{}",
        "[]",
        "[\"a\"]",
        "\"",
        "\"\"",
        "'",
        "''",
        "\\",
        "\\\\",
        "\\u0041",
        "A",
        ",",
        "a,b",
        "NULL",
        "null",
        "true",
        "1",
        "1.0",
        "1e3",
        " x",
        "x ",
        "\tx",
        "x\n",
        "\u{1}",
        "\u{7f}",
        "\u{85}x",
        "\u{feff}x",
        "%",
        "_",
        "$1",
        "?1",
        ":a",
        "--",
        "/*",
        "\u{2028}x",
        "\u{fffd}",
        "\u{ffff}",
        "\u{10ffff}",
        &"\u{1f980}".repeat(63),
        &"a".repeat(255),
        &"\u{1}".repeat(255),
    ])?;
    let mut session = scene.claimed(&odd).await?;
    scene.finish(&mut session, &odd).await?;
    scene.expect_claims(&odd).await?;
    session.begin().await?;
    let again = session.claim(&scene.consumer, &odd.refs()).await?;
    ensure!(again.iter().all(|ours| !ours), "not all were known again: {again:?}");
    Ok(session.rollback().await?)
}

async fn any_number_of_ids_is_one_claim<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    let mut known = 0;
    for count in [1, 50, 100, 5000] {
        let ids = numbers(count)?;
        session.begin().await?;
        let answers = session.claim(&scene.consumer, &ids.refs()).await?;
        let new = answers.iter().filter(|ours| **ours).count();
        ensure!(
            answers.len() == count && new == count - known,
            "{new} of {count} are new, {known} were known"
        );
        scene.finish(&mut session, &Ids(ids.0[known..].to_vec())).await?;
        known = count;
    }
    scene.expect_claims(&numbers(5000)?).await
}

/// H05: PostgreSQL's transaction is lost when a duplicate is found by a failing insert.
async fn a_duplicate_leaves_the_transaction_alive<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    scene.handle(&mut session, &ids(&["1"])?).await?;
    let both = scene.handle(&mut session, &ids(&["1", "2"])?).await?;
    ensure!(both.new == 1, "{} are new", both.new);
    scene.expect_effects(&["1", "2"]).await
}

async fn a_duplicate_waits_for_the_commit<S: InboxStore>(stage: Stage<S>) -> Done {
    let second = waiting_claim(stage, true).await?;
    ensure!(second.new == 0, "both claims of one id were answered yes");
    Ok(())
}

async fn a_waiting_claim_takes_over_after_a_rollback<S: InboxStore>(stage: Stage<S>) -> Done {
    let second = waiting_claim(stage, false).await?;
    ensure!(second.new == 1, "a claim was lost with the transaction that it had waited for");
    Ok(())
}

/// H05: a second transaction claims what a first one has claimed and not ended.
async fn waiting_claim<S: InboxStore>(stage: Stage<S>, commit: bool) -> Result<Handled, BoxError> {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut first = scene.claimed(&one).await?;
    scene.act(&mut first, Act::Effect("1")).await?;
    let mut other = scene.store.open().await?;
    let waiting = async { scene.handle(&mut other, &one).await };
    let ending = async {
        // Long enough for the other one to be waiting, whichever call it waits in.
        tokio::time::sleep(Duration::from_millis(300)).await;
        if commit { scene.finish(&mut first, &one).await } else { Ok(first.rollback().await?) }
    };
    let (second, ()) =
        scene.within("both transactions end", async { tokio::try_join!(waiting, ending) }).await??;
    ensure!(second.conflicts == 0, "waiting for a claim ended {} times as a conflict", second.conflicts);
    scene.expect_effects(&["1"]).await?;
    Ok(second)
}

/// Batches that share ids, each sorted, from four sessions at once: no deadlock, one effect each.
async fn same_ids_in_parallel_end_once_each<S: InboxStore>(stage: Stage<S>) -> Done {
    const ROUNDS: usize = 25;
    const BATCH: usize = 20;
    let scene = Scene::open(stage).await?;
    let lane = async |lane: usize| {
        let mut session = scene.store.open().await?;
        let (mut new, mut conflicts) = (0, 0);
        for round in 0..ROUNDS {
            // Shifted, so that lanes meet in the middle of each other's batches.
            let first = round * BATCH / 2 + lane * 3;
            let batch = (first..first + BATCH).map(|number| format!("{number:04}")).collect::<Vec<_>>();
            let handled = scene.handle(&mut session, &ids(&batch)?).await?;
            new += handled.new;
            conflicts += handled.conflicts;
        }
        Ok::<_, BoxError>((new, conflicts))
    };
    let all = async { tokio::try_join!(lane(0), lane(1), lane(2), lane(3)) };
    let (a, b, c, d) = scene.within("four lanes end", all).await??;
    let conflicts = a.1 + b.1 + c.1 + d.1;
    ensure!(conflicts == 0, "{conflicts} conflicts between sorted claims");
    let effects = scene.stage.effects().await?;
    let total = (ROUNDS - 1) * BATCH / 2 + 3 * 3 + BATCH;
    ensure!(effects.windows(2).all(|pair| pair[0] != pair[1]), "an id has two effects: {effects:?}");
    ensure!(effects.len() == total && a.0 + b.0 + c.0 + d.0 == total, "{} effects of {total}", effects.len());
    Ok(())
}
