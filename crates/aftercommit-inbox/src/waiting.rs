//! Messages that wait for their next attempt in the client, where each takes a place of the prefetch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aftercommit_core::{Capabilities, Delay};
use tokio::time::Instant;

/// Counts them, to say so when they have taken all places and nothing else can come. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Waiting(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// `None` where the broker keeps what waits: it takes no place there.
    places: Option<usize>,
    due: Mutex<Vec<Instant>>,
}

impl Waiting {
    pub(crate) fn new(capabilities: &Capabilities) -> Self {
        let places = matches!(capabilities.delay, Delay::Held { .. }).then_some(capabilities.prefetch);
        Self(Arc::new(Shared { places, due: Mutex::default() }))
    }

    pub(crate) fn given_back(&self, delay: Duration) {
        if self.0.places.is_some() {
            let (mut due, now) = (self.due(), Instant::now());
            // Where nobody asks for complaints and nothing says that it comes again, they would pile up.
            due.retain(|due| *due > now);
            due.push(now + delay);
        }
    }

    /// A delivery came that had been handed out before: one of those that wait, most likely, early perhaps because the
    /// connection was lost.
    pub(crate) fn came_again(&self) {
        let mut due = self.due();
        if let Some((first, _)) = due.iter().enumerate().min_by_key(|(_, due)| **due) {
            due.swap_remove(first);
        }
    }

    /// What there is to say, if they take all places.
    pub(crate) fn complaint(&self) -> Option<String> {
        let places = self.0.places?;
        let mut due = self.due();
        let now = Instant::now();
        due.retain(|due| *due > now);
        let next = due.iter().min().filter(|_| due.len() >= places)?;
        let next = next.saturating_duration_since(now).as_secs() + 1;
        Some(format!(
            "all {places} places of the prefetch are taken by messages that wait for their next attempt, \
             the next one for {next} s more; nothing else can come"
        ))
    }

    fn due(&self) -> MutexGuard<'_, Vec<Instant>> {
        self.0.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn waiting(delay: Delay) -> Waiting {
        let mut capabilities = Capabilities::new("any", 2);
        capabilities.delay = delay;
        Waiting::new(&capabilities)
    }

    #[tokio::test(start_paused = true)]
    async fn it_complains_while_they_take_all_places() {
        let waiting = waiting(Delay::Held { longest: MINUTE });
        waiting.given_back(MINUTE);
        assert_eq!(waiting.complaint(), None);
        waiting.given_back(MINUTE / 2);
        let says = waiting.complaint().unwrap();
        assert!(says.starts_with("all 2 places") && says.contains("31 s"), "{says}");
        waiting.came_again();
        assert_eq!(waiting.complaint(), None, "one of them is back");
        waiting.given_back(MINUTE / 2);
        tokio::time::advance(MINUTE / 2).await;
        assert_eq!(waiting.complaint(), None, "one of them is due");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_broker_keeps_takes_no_place() {
        let waiting = waiting(Delay::Native { longest: MINUTE });
        (0..5).for_each(|_| waiting.given_back(MINUTE));
        waiting.came_again();
        assert_eq!(waiting.complaint(), None);
    }
}
