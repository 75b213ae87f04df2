//! Several processes on one file.

use std::time::Duration;

use aftercommit_core::Broker as _;
use rustix::process::Signal;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::time::{sleep, timeout};

use crate::Done;
use crate::world::{PATIENCE, Process, World, config, subscription, until};

/// Three times a worker is killed with deliveries out; what it had not settled comes again to the next one.
pub(crate) async fn killed() -> Done {
    let world = World::new().await;
    world.publish(0..600).await;
    let mut out = 0;
    for round in 1..=3 {
        let worker = world.start("worker");
        world.until_effects(round * 100).await;
        worker.kill().await;
        out += world.queue.depth("orders").await?.unsettled;
    }
    assert!(out > 0, "each was killed with nothing out");
    let _last = world.start("worker");
    world.until_empty().await;
    world.each_once(600).await;
    Ok(())
}

/// Frozen after its commit and before its ack, until somebody else had the message and knew it.
pub(crate) async fn frozen() -> Done {
    let world = World::new().await;
    let mut hesitant = world.start("hesitant");
    hesitant.says("ready").await;
    world.publish(0..1).await;
    hesitant.says("committed").await;
    world.freeze(&hesitant).await;
    let _other = world.start("worker");
    world.until_empty().await;
    world.publish(1..2).await;
    world.until_effects(2).await;
    hesitant.signal(Signal::CONT);
    hesitant.tell().await;
    hesitant.says("settled").await;
    world.until_empty().await;
    world.each_once(2).await;
    Ok(())
}

pub(crate) async fn lost() -> Done {
    let world = World::new().await;
    world.publish(0..1).await;
    let mut holder = world.start("holder");
    holder.says("holding").await;
    world.freeze(&holder).await;
    let mut source = world.queue.source(&subscription()).await?;
    let taken = timeout(PATIENCE, source.recv(1)).await??;
    holder.signal(Signal::CONT);
    holder.tell().await;
    holder.says("lost").await;
    assert_eq!(world.queue.depth("orders").await?.unsettled, 1, "it settled what was not its own");
    drop(taken);
    Ok(())
}

/// H09 on the queue's file, beside an inbox that two processes share.
pub(crate) async fn many() -> Done {
    let world = World::new().await;
    let (_one, _two) = (world.start("worker"), world.start("worker"));
    world.publish(0..2500).await;
    world.until_effects(500).await;
    let mut holder = SqliteConnectOptions::new().filename(world.file()).connect().await?;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut holder).await?;
    sleep(Duration::from_secs(3)).await;
    sqlx::raw_sql("COMMIT").execute(&mut holder).await?;
    world.publish(2500..5000).await;
    world.until_empty().await;
    world.each_once(5000).await;
    Ok(())
}

pub(crate) async fn made_at_once() -> Done {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("queue.db");
    let mut makers: Vec<_> = (0..6).map(|_| Process::start("maker", std::slice::from_ref(&file))).collect();
    for maker in &mut makers {
        maker.tell().await;
    }
    for maker in &mut makers {
        maker.says("made").await;
    }
    let queue = aftercommit_sqlqueue::SqlQueue::connect(config(&file)).await?;
    until("everything is declared", async || queue.check(&subscription()).await.unwrap().is_empty()).await;
    Ok(())
}
