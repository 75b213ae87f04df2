//! The broker's time.

use std::sync::Arc;
use std::time::Duration;

use crate::shared::Shared;

/// The broker's clock. With [`Time::Virtual`](crate::Time::Virtual) it stands still until somebody moves it.
#[derive(Clone, Debug)]
pub struct Clock {
    shared: Arc<Shared>,
}

impl Clock {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// How much time has passed since the broker was made.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.shared.lock().now
    }

    /// Moves the clock and wakes everybody for whom something became due.
    pub fn advance(&self, by: Duration) {
        self.shared.change(|state| state.now += by);
    }
}
