//! SQLite tells us when a transaction ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::sqlite::SqliteConnection;

/// A handler can end our transaction: by a raw COMMIT or ROLLBACK, or by a constraint or trigger
/// that rolls back. Whatever it writes then commits by itself, statement by statement, and would
/// stay although the message is not handled. So no COMMIT passes that the store has not armed, and
/// every rollback is noticed.
#[derive(Clone, Debug, Default)]
pub(super) struct Hooks {
    armed: Arc<AtomicBool>,
    rolled_back: Arc<AtomicBool>,
}

impl Hooks {
    pub(super) async fn install(conn: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let hooks = Self::default();
        let (armed, rolled_back) = (Arc::clone(&hooks.armed), Arc::clone(&hooks.rolled_back));
        let mut handle = conn.lock_handle().await?;
        handle.set_commit_hook(move || armed.load(Ordering::SeqCst));
        handle.set_rollback_hook(move || rolled_back.store(true, Ordering::SeqCst));
        Ok(hooks)
    }

    /// Before BEGIN.
    pub(super) fn reset(&self) {
        self.armed.store(false, Ordering::SeqCst);
        self.rolled_back.store(false, Ordering::SeqCst);
    }

    /// Lets one COMMIT pass.
    pub(super) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    /// After COMMIT.
    pub(super) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }

    /// Whether the transaction that began after the last [`reset`](Self::reset) was rolled back.
    pub(super) fn has_rolled_back(&self) -> bool {
        self.rolled_back.load(Ordering::SeqCst)
    }
}
