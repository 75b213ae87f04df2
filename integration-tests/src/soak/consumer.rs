//! The consumer process.

use std::process::ExitCode;
use std::time::Duration;

use aftercommit_core::{Failure, Message, RetryPolicy, Subscription};
use aftercommit_inbox::{Consumer, ConsumerError, Handled, Handler, Running, typed};
use aftercommit_rabbitmq::Config;
use aftercommit_sql::PgInbox;
use sqlx::postgres::PgConnection;
use tokio::signal::unix::{SignalKind, signal};

use super::load::{Body, Kind};
use crate::database::{Database, effect};

/// Consumes until SIGTERM: `DATABASE-URL SCHEMA AMQP-URL CONSUMER QUEUE`.
///
/// # Panics
///
/// When the arguments are wrong.
///
/// # Cancel safety
///
/// Dropping the future begins a graceful shutdown.
pub async fn main(args: &[String]) -> ExitCode {
    let [database, schema, amqp, consumer, queue] = args else { panic!("five arguments, not {args:?}") };
    tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr).init();
    let mut term = signal(SignalKind::terminate()).expect("a handler of SIGTERM");
    let db = Database::existing(database, schema);
    let subscription = Subscription::new(consumer, queue).expect("plain names");
    let starting = async {
        loop {
            match start(&db, amqp, &subscription).await {
                Ok(running) => return Ok(running),
                Err(error) if error.is_retryable() => eprintln!("not started: {error}"),
                Err(error) => return Err(error),
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let started = tokio::select! {
        started = starting => started,
        _ = term.recv() => return ExitCode::SUCCESS,
    };
    let ended = match started {
        Ok(running) => running.until(async { term.recv().await.unwrap_or_default() }).await,
        Err(error) => Err(error),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ended: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn start(db: &Database, amqp: &str, subscription: &Subscription) -> Result<Running, ConsumerError> {
    let broker = aftercommit_rabbitmq::connect(Config::new(amqp)?).await?;
    // Frozen processes lose their claims soon.
    let options = db.options().idle_in_transaction_timeout(Duration::from_secs(2))?;
    let inbox = PgInbox::with_options(db.pool(5), options);
    // Many, because a process that was frozen in its handler has failed.
    let retry = RetryPolicy::new(vec![Duration::from_millis(200); 50])?;
    let consumer = Consumer::new(inbox, handler()).lanes(3).max_batch(20).retry(retry);
    consumer.start(broker, subscription.clone()).await
}

fn handler() -> impl Handler<PgInbox> {
    typed(|db: &mut PgConnection, body: &Body, message: &Message| {
        Box::pin(async move {
            let id = std::str::from_utf8(message.id.as_deref().unwrap_or_default())?;
            match body.kind {
                Kind::Invariant => return Err(Failure::invariant("it must not be")),
                Kind::Flaky if failures(db, id).await? < 2 => {
                    return Err(Failure::transient("it fails twice"));
                }
                Kind::Flaky | Kind::Plain | Kind::Broken => {}
            }
            effect(db, id, "").await?;
            // Time to be killed and frozen in, inside the transaction.
            sqlx::query("SELECT pg_sleep(0.001)").execute(db).await?;
            Ok(Handled::Applied)
        })
    })
}

async fn failures(db: &mut PgConnection, id: &str) -> Result<i32, sqlx::Error> {
    let sql = "SELECT failures FROM inbox_attempts WHERE message_id = $1";
    Ok(sqlx::query_scalar(sql).bind(id).fetch_optional(db).await?.unwrap_or(0))
}
