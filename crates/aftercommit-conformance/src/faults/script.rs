//! Which fault happens at which point.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// A seam: a kind of call that leaves the code under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Seam {
    /// [`Source::recv`](aftercommit_core::Source::recv).
    Recv,
    /// The store begins a transaction.
    Begin,
    /// The store claims messages.
    Claim,
    /// The handler runs.
    Handle,
    /// The store's own last statement before the commit.
    LastStatement,
    /// The store commits.
    Commit,
    /// [`Acker::ack`](aftercommit_core::Acker::ack).
    Ack,
    /// [`Acker::give_back`](aftercommit_core::Acker::give_back).
    GiveBack,
    /// [`Publisher::publish`](aftercommit_core::Publisher::publish).
    Publish,
    /// [`Source::close`](aftercommit_core::Source::close).
    Close,
}

/// On which side of the call a point lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Nothing was done yet.
    Before,
    /// It was done, and the caller does not know it yet.
    After,
}

/// One point of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Point {
    /// Counted from 0 over all seams, in the order of arrival.
    pub number: usize,
    /// Which seam.
    pub seam: Seam,
    /// Before or after the call.
    pub side: Side,
}

/// What happens at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The process is dead: this call and every later one over a seam of the same script never
    /// returns. [`Script::crashed`] tells the test.
    Crash,
    /// Before the call: it is not made and answers an error. After it: as
    /// [`LoseAnswer`](Self::LoseAnswer).
    Fail,
    /// The call is made, and its answer is an error that leaves it open.
    LoseAnswer,
    /// The call waits at this point until [`Script::release`].
    Delay,
}

/// What is left to do for who called [`Script::point`]; crash and delay have happened inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Action {
    /// Go on.
    Go,
    /// See [`Fault::Fail`].
    Fail,
    /// See [`Fault::LoseAnswer`].
    LoseAnswer,
}

/// Whether a call that answers an injected error was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Injected {
    /// It was not made.
    #[error("injected: the call was not made")]
    NotMade,
    /// It was made, whatever came of it.
    #[error("injected: the answer was lost")]
    AnswerLost,
}

/// Numbers the points of one process's life and says what happens at them. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Script {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    trace: Vec<Point>,
    faults: BTreeMap<usize, Fault>,
    /// Faults at the nth point of a seam and side.
    planned: Vec<(Seam, Side, usize, Fault)>,
    crashed: Option<Point>,
    delayed: Option<Point>,
    released: bool,
}

impl State {
    /// Asked before the point joins the trace.
    fn fault_at(&self, point: Point) -> Option<Fault> {
        let nth = self.trace.iter().filter(|past| past.seam == point.seam && past.side == point.side).count();
        let planned = self
            .planned
            .iter()
            .find(|(seam, side, at, _)| (*seam, *side, *at) == (point.seam, point.side, nth));
        self.faults.get(&point.number).copied().or(planned.map(|(.., fault)| *fault))
    }
}

impl Script {
    /// A script without faults, that only lists its points.
    #[must_use]
    pub fn record() -> Self {
        Self::default()
    }

    /// The same with a fault at a point.
    #[must_use]
    pub fn with(self, number: usize, fault: Fault) -> Self {
        self.lock().faults.insert(number, fault);
        self
    }

    /// The same with a fault at the `nth` point (from 0) of a seam and side, for runs whose numbers
    /// nobody knows beforehand.
    #[must_use]
    pub fn at(self, seam: Seam, side: Side, nth: usize, fault: Fault) -> Self {
        self.lock().planned.push((seam, side, nth, fault));
        self
    }

    /// The points so far.
    #[must_use]
    pub fn trace(&self) -> Vec<Point> {
        self.lock().trace.clone()
    }

    /// To be called before and after every call over a seam.
    ///
    /// # Cancel safety
    /// The point is counted by the first poll; a dropped future changes nothing more.
    pub async fn point(&self, seam: Seam, side: Side) -> Action {
        let Some((point, fault)) = self.arrive(seam, side) else { return pending().await };
        match fault {
            None => Action::Go,
            Some(Fault::Fail) => Action::Fail,
            Some(Fault::LoseAnswer) => Action::LoseAnswer,
            Some(Fault::Crash) => {
                self.change(|state| state.crashed = Some(point));
                pending().await
            }
            Some(Fault::Delay) => {
                self.change(|state| state.delayed = Some(point));
                self.until(|state| state.released.then_some(Action::Go)).await
            }
        }
    }

    /// Makes a call over a seam between its two points. With a fault that reports an error, `error`
    /// makes one of the caller's own kind.
    ///
    /// # Errors
    /// The call's own, or what `error` makes.
    ///
    /// # Cancel safety
    /// As the call's own.
    pub async fn across<T, E>(
        &self,
        seam: Seam,
        call: impl Future<Output = Result<T, E>>,
        error: impl FnOnce(Injected) -> E,
    ) -> Result<T, E> {
        let before = self.point(seam, Side::Before).await;
        if before == Action::Fail {
            return Err(error(Injected::NotMade));
        }
        let answer = call.await;
        let after = self.point(seam, Side::After).await;
        if before == Action::LoseAnswer || after != Action::Go {
            return Err(error(Injected::AnswerLost));
        }
        answer
    }

    /// Waits for [`Fault::Crash`]. What the script's process then still holds is to be dropped, and
    /// its connection ended, as the system does for a process that died.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn crashed(&self) -> Point {
        self.until(|state| state.crashed).await
    }

    /// Waits until somebody waits at a [`Fault::Delay`].
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn delayed(&self) -> Point {
        self.until(|state| state.delayed).await
    }

    /// Lets everybody go who waits at a [`Fault::Delay`], now and later.
    pub fn release(&self) {
        self.change(|state| state.released = true);
    }

    /// Counts a point. `None` when the process is dead.
    fn arrive(&self, seam: Seam, side: Side) -> Option<(Point, Option<Fault>)> {
        let mut state = self.lock();
        if state.crashed.is_some() {
            return None;
        }
        let point = Point { number: state.trace.len(), seam, side };
        let fault = state.fault_at(point);
        state.trace.push(point);
        Some((point, fault))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.shared.changed.notify_waiters();
    }

    async fn until<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Registered before looking, so that no change falls between the look and the wait.
            changed.as_mut().enable();
            let found = look(&self.lock());
            if let Some(found) = found {
                return found;
            }
            changed.await;
        }
    }
}
