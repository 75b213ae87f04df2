use std::fs;
use std::time::Duration;

use aftercommit_core::{Broker as _, BrokerError, Message, PublishError};
use aftercommit_sqlqueue::{Config, SqlQueue};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::time::{Instant, sleep};

use crate::support::{World, ack, body, nothing_comes, take, until, until_up};

async fn lock(world: &World) -> sqlx::sqlite::SqliteConnection {
    let mut holder = world.foreign().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut holder).await.unwrap();
    holder
}

/// H09, on the queue's own file: a foreign transaction of three seconds costs three seconds.
#[tokio::test]
async fn a_foreign_write_is_waited_for() {
    let world = World::new().await;
    world.send(&["1"]).await;
    let mut source = world.source().await;
    let delivery = take(&mut source).await;
    let mut holder = lock(&world).await;
    let start = Instant::now();
    let release = async {
        sleep(Duration::from_secs(3)).await;
        sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    };
    let (published, settled, ()) = tokio::join!(world.publish(Message::new("2")), ack(delivery), release);
    published.unwrap();
    settled.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(3));
    assert_eq!(body(&take(&mut source).await), b"2");
}

#[tokio::test]
async fn a_lock_that_is_held_too_long_is_said_and_nothing_is_lost() {
    let world = World::with(|config| config.with_busy_timeout(Duration::from_millis(200)).unwrap()).await;
    let mut source = world.source().await;
    let health = source.health();
    world.send(&["1"]).await;
    let holder = lock(&world).await;
    let error = world.publish(Message::new("2")).await.unwrap_err();
    assert!(matches!(error, PublishError::Unknown { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("queue.db") && text.contains("write lock"), "{text}");
    // Reading goes on, and looking is not refused.
    assert_eq!(world.total().await, 1);
    nothing_comes(&mut source, Duration::from_millis(500)).await;
    let reason = health.reason().expect("a source that cannot claim is down");
    assert!(reason.contains("queue.db") && reason.contains("write lock"), "{reason}");
    holder.close().await.unwrap();
    assert_eq!(body(&take(&mut source).await), b"1");
    until_up(&health).await;
    assert_eq!(world.total().await, 1, "the second was told to be unknown, and is not there");
}

/// Without a message to claim: found by trying.
#[tokio::test]
async fn a_source_that_could_not_write_finds_out_when_it_can() {
    let world = World::with(|config| config.with_busy_timeout(Duration::from_millis(100)).unwrap()).await;
    let mut source = world.source().await;
    let health = source.health();
    world.send(&["1"]).await;
    let delivery = take(&mut source).await;
    let holder = lock(&world).await;
    until("a renewal has failed", || !health.is_up()).await;
    holder.close().await.unwrap();
    until_up(&health).await;
    ack(delivery).await.unwrap();
}

#[tokio::test]
async fn what_is_no_database_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queue.db");
    fs::write(&path, "this is no database, and long enough to be looked at ".repeat(100)).unwrap();
    let error = SqlQueue::connect(Config::at(&path).unwrap()).await.unwrap_err();
    assert!(matches!(error, BrokerError::Topology { .. }) && !error.is_retryable(), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("queue.db") && text.contains("damaged") && text.contains("restore"), "{text}");

    let error = SqlQueue::connect(Config::at(folder.path().join("nowhere/queue.db")).unwrap()).await;
    let error = error.unwrap_err();
    assert!(matches!(error, BrokerError::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("nowhere/queue.db"), "{error}");
}

/// The folder is exchanged for one with a damaged file, and back, as by another mount. With its log: the file alone would
/// be without what is only in there.
#[tokio::test]
async fn a_damaged_file_is_said_and_a_restored_one_is_read_on() {
    let world = World::new().await;
    let mut source = world.source().await;
    let health = source.health();
    world.send(&["kept"]).await;
    let (here, good) = (world.folder.path(), world.folder.path().with_extension("good"));
    fs::rename(here, &good).unwrap();
    fs::create_dir(here).unwrap();
    fs::write(world.path(), vec![0xa5; 64 << 10]).unwrap();
    until("the source is down", || health.reason().is_some_and(|reason| reason.contains("damaged"))).await;
    let error = world.publish(Message::new("nowhere")).await.unwrap_err();
    assert!(
        matches!(error, PublishError::Unknown { .. }) && error.to_string().contains("damaged"),
        "{error}"
    );
    let error = world.queue.check(&world.subscription).await.unwrap_err();
    assert!(error.to_string().contains("queue.db"), "{error}");
    fs::remove_dir_all(here).unwrap();
    fs::rename(&good, here).unwrap();
    until_up(&health).await;
    let delivery = take(&mut source).await;
    assert_eq!(body(&delivery), b"kept");
    ack(delivery).await.unwrap();
    world.send(&["next"]).await;
}

/// A file that is deleted under its users can still be written, and nobody may be told that it is kept.
#[tokio::test]
async fn a_deleted_file_takes_no_message() {
    let world = World::new().await;
    world.send(&["1"]).await;
    let source = world.source().await;
    fs::remove_file(world.path()).unwrap();
    let error = world.publish(Message::new("2")).await.unwrap_err();
    assert!(matches!(error, PublishError::Unknown { .. }) && error.to_string().contains("gone"), "{error}");
    until("the source is down", || source.health().reason().is_some_and(|reason| reason.contains("gone")))
        .await;
    assert!(!world.path().exists(), "only connecting makes a file");
    // Who connects begins anew, and everybody goes on with that.
    let anew = SqlQueue::connect(Config::at(world.path()).unwrap()).await.unwrap();
    anew.declare(&world.subscription).await.unwrap();
    world.send(&["3"]).await;
    assert_eq!(world.total().await, 1);
    until_up(&source.health()).await;
}

/// SQLite deletes the log by its name when the last connection to a file is closed, unless the file was moved: we stand on
/// that, since the log there may be that of a new file, with what is only in it.
#[tokio::test]
async fn the_log_of_a_file_that_took_its_place_is_left_alone() {
    let world = World::new().await;
    world.send(&["1"]).await;
    let source = world.source().await;
    for name in ["queue.db", "queue.db-wal", "queue.db-shm"] {
        fs::remove_file(world.folder.path().join(name)).unwrap();
    }
    let new = SqliteConnectOptions::new().filename(world.path()).create_if_missing(true);
    let mut new = new.journal_mode(SqliteJournalMode::Wal).connect().await.unwrap();
    sqlx::raw_sql("CREATE TABLE theirs (id INTEGER); INSERT INTO theirs VALUES (7)")
        .execute(&mut new)
        .await
        .unwrap();
    until("the source is down", || {
        source.health().reason().is_some_and(|reason| reason.contains("no tables"))
    })
    .await;
    world.publish(Message::new("2")).await.unwrap_err();
    let broker = world.queue;
    drop((source, world.publisher, broker));
    let mut other = SqliteConnectOptions::new().filename(world.folder.path().join("queue.db"));
    other = other.journal_mode(SqliteJournalMode::Wal);
    let found: i64 = sqlx::query_scalar("SELECT id FROM theirs")
        .fetch_one(&mut other.connect().await.unwrap())
        .await
        .unwrap();
    assert_eq!(found, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_make_one_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("queue.db");
    let one = || SqlQueue::connect(Config::at(&path).unwrap());
    let made = futures_util::future::join_all((0..16).map(|_| one())).await;
    for queue in made {
        queue.unwrap();
    }
}
