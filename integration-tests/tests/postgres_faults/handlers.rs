//! Handlers that hide what the database told them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aftercommit_core::{HeaderValue, Message, dead_letter};
use aftercommit_inbox::{Handled, handler_fn};
use aftercommit_integration_tests::database::effect;
use aftercommit_integration_tests::until::PATIENCE;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use crate::stage::{Stage, id, ids};

/// PostgreSQL answers COMMIT with ROLLBACK then, and the driver calls that success.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_swallows_an_sql_error_is_never_confirmed() {
    let stage = Stage::new("swallow").await;
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let handler = handler_fn(move |db: &mut PgConnection, message: &Message| {
        let counted = Arc::clone(&counted);
        Box::pin(async move {
            effect(db, id(message), "").await?;
            let always = id(message) == "always";
            if always || (id(message) == "once" && counted.fetch_add(1, Ordering::SeqCst) == 0) {
                let _ = sqlx::query("SELECT 1 / 0").execute(db).await;
            }
            Ok(Handled::Applied)
        })
    });
    let running = stage.start(stage.consumer(handler)).await;
    let mut ids = ids(50);
    ids.push("once".to_owned());
    let publisher = stage.queue.publish(ids.iter().map(String::as_str).chain(["always"]));
    publisher.await;
    stage.queue.has_dead_letters(1).await;
    stage.ends([running], &ids).await;
    assert!(calls.load(Ordering::SeqCst) >= 2, "it ran again");

    let mut letters = stage.queue.broker.dead_letters(&stage.queue.subscription).await.unwrap();
    let letter = timeout(PATIENCE, letters.recv(1)).await.unwrap().unwrap().into_iter().next().unwrap();
    let says = |name| letter.message.headers.get(name);
    assert_eq!(letter.message.id.as_deref(), Some(&b"always"[..]));
    assert_eq!(says(dead_letter::header::CLASS).and_then(HeaderValue::as_str), Some("transient"));
    assert_eq!(says(dead_letter::header::ATTEMPTS).and_then(HeaderValue::as_i64), Some(3));
}
