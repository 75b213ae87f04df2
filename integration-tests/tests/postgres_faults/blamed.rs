//! Messages whose handler brings the database to say that it is away, or that it conflicts, though nothing is wrong with
//! it: they cost attempts and become dead letters, and nobody else waits for them.

use aftercommit_core::Message;
use aftercommit_inbox::{Handled, handler_fn};
use aftercommit_integration_tests::database::effect;
use sqlx::Connection;
use sqlx::postgres::PgConnection;

use crate::stage::{Stage, id, ids};

/// What the handler does for a message of this name.
async fn does(db: &mut PgConnection, name: &str) -> Result<(), sqlx::Error> {
    const SUICIDE: &str = "SELECT pg_terminate_backend(pg_backend_pid())";
    match name {
        "suicide" => drop(sqlx::query(SUICIDE).execute(db).await),
        "suicide_in_a_savepoint" => {
            let mut savepoint = db.begin().await?;
            if sqlx::query(SUICIDE).execute(&mut *savepoint).await.is_err() {
                drop(savepoint.rollback().await);
            }
        }
        "broken_at_commit" => {
            sqlx::query("INSERT INTO refused VALUES (1)").execute(db).await?;
        }
        "unfinished_copy" => {
            let mut copy = db.copy_in_raw("COPY refused FROM STDIN").await?;
            copy.send(&b"1\n"[..]).await?;
        }
        _ => {}
    }
    Ok(())
}

async fn is_parked_and_holds_up_nobody(name: &'static str) {
    let stage = Stage::new(name).await;
    stage
        .db
        .run(
            "CREATE TABLE refused (n int);
             CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$BEGIN RAISE 'no' USING ERRCODE = 'XX000'; END$$;
             CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON refused DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW EXECUTE FUNCTION refuse()",
        )
        .await;
    let handler = handler_fn(|db: &mut PgConnection, message: &Message| {
        Box::pin(async move {
            effect(db, id(message), "").await?;
            does(db, id(message)).await?;
            Ok(Handled::Applied)
        })
    });
    let running = stage.start(stage.consumer(handler)).await;
    let ids = ids(30);
    let (before, after) = ids.split_at(10);
    stage.queue.publish(before.iter().map(String::as_str).chain([name])).await;
    stage.queue.publish(after).await;
    stage.queue.has_dead_letters(1).await;
    stage.ends([running], &ids).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swallowed_end_of_its_own_connection() {
    is_parked_and_holds_up_nobody("suicide").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swallowed_end_of_its_own_connection_in_a_savepoint() {
    is_parked_and_holds_up_nobody("suicide_in_a_savepoint").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_never_answered_clearly() {
    is_parked_and_holds_up_nobody("broken_at_commit").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_is_left_unfinished() {
    is_parked_and_holds_up_nobody("unfinished_copy").await;
}
