//! The state behind one lock, and the bell that rings when it changed.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::state::State;

pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.look_at_the_clock();
        state
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let answer = change(&mut self.lock());
        self.changed.notify_waiters();
        answer
    }

    /// Looks at each change until `look` answers something. Looks once before it waits.
    pub(crate) async fn until<T>(&self, look: impl FnMut(&mut State) -> Option<T> + Send) -> T {
        self.until_or_at(Duration::MAX, look).await
    }

    /// The same, which looks at this time on the broker's clock too.
    pub(crate) async fn until_or_at<T>(
        &self,
        deadline: Duration,
        mut look: impl FnMut(&mut State) -> Option<T> + Send,
    ) -> T {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Registered before looking, so that no change falls between the look and the wait.
            changed.as_mut().enable();
            let (found, wait) = {
                let mut state = self.lock();
                (look(&mut state), state.real_time_until_next(deadline))
            };
            match (found, wait) {
                (Some(found), _) => return found,
                (None, None) => changed.await,
                // Whether the time has come or something changed, it is looked at again.
                (None, Some(wait)) => drop(timeout(wait, changed).await),
            }
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
