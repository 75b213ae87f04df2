//! A database, a queue and what must hold in the end.

use std::path::Path;
use std::time::Duration;

use aftercommit_core::{Message, RetryPolicy};
use aftercommit_inbox::{Consumer, Handled, Handler, Running, handler_fn, metric};
use aftercommit_integration_tests::counted::Counted;
use aftercommit_integration_tests::database::{Database, effect};
use aftercommit_integration_tests::node;
use aftercommit_integration_tests::queue::Queue;
use aftercommit_integration_tests::until::{PATIENCE, until_true};
use aftercommit_sql::PgInbox;
use sqlx::postgres::PgConnection;

pub(crate) struct Stage {
    pub(crate) db: Database,
    pub(crate) queue: Queue,
    counted: Counted,
}

impl Stage {
    /// On the PostgreSQL that these tests share.
    pub(crate) async fn new(name: &str) -> Self {
        Self::on(&node::common_postgres().await.url(), name).await
    }

    pub(crate) async fn on(url: &str, name: &str) -> Self {
        let counted = Counted::install();
        let db = Database::create(url, name).await;
        let queue = Queue::shared(db.schema()).await;
        Self { db, queue, counted }
    }

    /// A consumer on six connections with four lanes and small batches.
    pub(crate) fn consumer(&self, handler: impl Handler<PgInbox>) -> Consumer<PgInbox> {
        self.consumer_on(self.db.inbox(), handler)
    }

    #[expect(clippy::unused_self, reason = "reads like its sister")]
    pub(crate) fn consumer_on(&self, inbox: PgInbox, handler: impl Handler<PgInbox>) -> Consumer<PgInbox> {
        Consumer::new(inbox, handler).max_batch(10).retry(quickly())
    }

    pub(crate) async fn start(&self, consumer: Consumer<PgInbox>) -> Running {
        consumer.start(self.queue.broker.clone(), self.queue.subscription.clone()).await.unwrap()
    }

    /// How often the consumer saw this fault of the database.
    pub(crate) fn faults(&self, fault: &str) -> u64 {
        self.counted.of(self.queue.consumer(), metric::FAULTS, fault)
    }

    pub(crate) fn outcomes(&self, outcome: &str) -> u64 {
        self.counted.of(self.queue.consumer(), metric::MESSAGES, outcome)
    }

    /// Lines of the common server's log about this stage's sessions.
    pub(crate) async fn log_lines(&self, what: &str) -> Vec<String> {
        let data = node::common_postgres().await.sql("SHOW data_directory").unwrap();
        let log = Path::new(data.trim()).parent().unwrap().join("server.log");
        let log = String::from_utf8_lossy(&std::fs::read(log).unwrap()).into_owned();
        assert!(log.contains("LOG:  "), "this is the log");
        let ours = log.lines().filter(|line| line.contains(self.db.schema()) && line.contains(what));
        ours.map(str::to_owned).collect()
    }

    /// Waits until the consumer says whether its database is there.
    pub(crate) async fn database_is(&self, up: bool, running: &Running) {
        let health = running.health();
        let says = || health.not_ready().iter().any(|complaint| complaint.part == "database") != up;
        until_true(if up { "ready again" } else { "not ready" }, PATIENCE, says).await;
    }

    /// Each of these has one effect, nothing else happened, nothing is left anywhere and no attempt was spent.
    pub(crate) async fn ends_well(&self, running: impl IntoIterator<Item = Running>, ids: &[String]) {
        self.ends(running, ids).await;
        self.db.no_attempt_was_spent().await;
        self.queue.has_dead_letters(0).await;
    }

    /// As [`ends_well`](Self::ends_well), whatever the attempts and dead letters.
    pub(crate) async fn ends(&self, running: impl IntoIterator<Item = Running>, ids: &[String]) {
        self.db.has_one_effect_each(ids, PATIENCE).await;
        for running in running {
            assert!(running.health().is_alive());
            running.shut_down();
            running.ended().await.unwrap();
        }
        self.queue.is_empty().await;
        self.db.nothing_is_idle_in_a_transaction().await;
    }
}

/// Attempts that do not make a test wait.
pub(crate) fn quickly() -> RetryPolicy {
    RetryPolicy::new([100, 100].map(Duration::from_millis)).unwrap()
}

pub(crate) fn ids(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("evt-{n:05}")).collect()
}

pub(crate) fn id(message: &Message) -> &str {
    std::str::from_utf8(message.id.as_deref().unwrap()).unwrap()
}

/// Writes one row.
pub(crate) fn writes_a_row() -> impl Handler<PgInbox> {
    handler_fn(|db: &mut PgConnection, message: &Message| {
        Box::pin(async move {
            effect(db, id(message), "").await?;
            Ok(Handled::Applied)
        })
    })
}
