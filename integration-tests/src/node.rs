//! Private servers, started and hurt off the async threads.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use xtask::services::{postgres, rabbitmq};

use crate::until::{PATIENCE, until};

/// A private server that can be used from async code.
#[derive(Debug)]
pub struct Private<N>(Arc<N>);

impl<N> Clone for Private<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<N> Deref for Private<N> {
    type Target = N;

    fn deref(&self) -> &N {
        &self.0
    }
}

impl<N: Send + Sync + 'static> Private<N> {
    /// Does something to the server that may take seconds.
    ///
    /// # Panics
    ///
    /// When that fails, with its error.
    ///
    /// # Cancel safety
    ///
    /// What was begun goes on.
    pub async fn does<T: Send + 'static>(
        &self,
        what: impl FnOnce(&N) -> xtask::Result<T> + Send + 'static,
    ) -> T {
        let node = self.clone();
        blocking(move || what(&node)).await
    }
}

impl Private<rabbitmq::Node> {
    /// Messages of a queue right now, unsettled ones with them; `None` when it cannot be told.
    ///
    /// # Panics
    ///
    /// When there is no Erlang.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn depth(&self, queue: &str) -> Option<u64> {
        let queue = queue.to_owned();
        self.does(move |node| Ok(node.depths()?.of(&queue).ok())).await.map(rabbitmq::Depth::total)
    }

    /// Waits until nothing is left in a queue, unsettled messages with it.
    ///
    /// # Panics
    ///
    /// When that is not so in time.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn empties(&self, queue: &str) {
        until(&format!("{queue} is empty"), PATIENCE, || self.is_empty(queue)).await;
    }

    /// Whether nothing is left in a queue, unsettled messages with it; else what is.
    ///
    /// # Errors
    ///
    /// How many there are.
    ///
    /// # Panics
    ///
    /// As [`depth`](Self::depth).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn is_empty(&self, queue: &str) -> Result<(), String> {
        match self.depth(queue).await {
            Some(0) => Ok(()),
            found => Err(format!("{found:?} messages are there")),
        }
    }
}

async fn blocking<T: Send + 'static>(what: impl FnOnce() -> xtask::Result<T> + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(what).await.expect("it does not panic");
    done.unwrap_or_else(|error| panic!("{error}"))
}

/// What every private PostgreSQL has besides: deadlocks are found soon, and each line of the log tells SQLSTATE and
/// application.
const POSTGRES: &str =
    "deadlock_timeout = 50ms\nlog_error_verbosity = verbose\nlog_line_prefix = '%m [%p] %a '\n";

/// Starts a PostgreSQL for one test.
///
/// # Panics
///
/// When it cannot be started.
///
/// # Cancel safety
///
/// A server that was started is removed again.
pub async fn postgres(extra_config: &str) -> Private<postgres::Node> {
    let config = format!("{POSTGRES}{extra_config}");
    let start = move || postgres::Node::start(postgres::NodeOptions { extra_config: &config });
    Private(Arc::new(blocking(start).await))
}

/// The PostgreSQL of this test binary, for tests that do not restart it.
///
/// # Panics
///
/// When it cannot be started.
///
/// # Cancel safety
///
/// The start goes on.
pub async fn common_postgres() -> &'static postgres::Node {
    // Its keeper removes it when this process ends, however it ends.
    static NODE: OnceLock<postgres::Node> = OnceLock::new();
    blocking(|| {
        let start = || postgres::Node::start(postgres::NodeOptions { extra_config: POSTGRES });
        Ok(NODE.get_or_init(|| start().unwrap_or_else(|error| panic!("{error}"))))
    })
    .await
}

/// Starts a RabbitMQ for one test.
///
/// # Panics
///
/// When it cannot be started.
///
/// # Cancel safety
///
/// A server that was started is removed again.
pub async fn rabbitmq(extra_config: &str) -> Private<rabbitmq::Node> {
    let config = extra_config.to_owned();
    let start = move || rabbitmq::Node::start(rabbitmq::NodeOptions { extra_config: &config });
    Private(Arc::new(blocking(start).await))
}
