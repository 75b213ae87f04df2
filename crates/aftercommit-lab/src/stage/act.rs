//! What is done on a stage: publishing, dying, draining.

use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::Stage;
use crate::LabError;
use crate::plan::Crash;
use crate::process::{PATIENCE, Process};
use crate::product::Sight;
use crate::role::{Assignment, Consume, HALTED, Part};
use crate::tally::Tally;

/// How often the queue is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// After so long without a line, a consumer at an empty queue has nothing left to do.
const QUIET: Duration = Duration::from_secs(3);

impl Stage<'_> {
    async fn start(&self, part: Part) -> Result<Process, LabError> {
        Process::start(&self.program, &Assignment { site: self.site.clone(), part }).await
    }

    fn note(&self, tally: &mut Tally, line: crate::LogLine) {
        self.watch.line(&line);
        tally.add(line);
    }

    /// Runs a process to its end.
    async fn to_the_end(&self, part: Part, tally: &mut Tally) -> Result<i32, LabError> {
        let mut process = self.start(part).await?;
        while let Some(line) = process.line_in_time().await? {
            self.note(tally, line);
        }
        process.exit_code().await
    }

    /// Runs the producer; its exit code.
    pub(crate) async fn publish(&self, part: Part, tally: &mut Tally) -> Result<i32, LabError> {
        match self.to_the_end(part, tally).await? {
            0 => Ok(0),
            code => Err(LabError::failed(format!("the producer ended with {code}, see above"))),
        }
    }

    /// Runs a consumer that dies; its exit code.
    pub(crate) async fn crash(
        &self,
        part: Consume,
        crash: Crash,
        tally: &mut Tally,
    ) -> Result<i32, LabError> {
        let part = Consume { crash: Some(crash), ..part };
        let before = tally.crashes;
        let code = self.to_the_end(Part::Consumer(part), tally).await?;
        if code == i32::from(HALTED) && tally.crashes > before {
            return Ok(code);
        }
        if code == i32::from(HALTED) {
            // The same code as that of SIGKILL.
            return Err(LabError::failed(
                "the consumer that was to die was killed by somebody else before".to_owned(),
            ));
        }
        Err(LabError::failed(format!("the consumer that was to die ended with {code}, see above")))
    }

    /// Waits until nobody holds a message: the broker has heard of the consumer's end, and what it held is back.
    pub(crate) async fn at_rest(&self) -> Result<Sight, LabError> {
        let end = Instant::now() + PATIENCE;
        loop {
            let sight = self.outside()?.look().await?;
            if !sight.held {
                return Ok(sight);
            }
            if Instant::now() > end {
                return Err(LabError::failed(format!(
                    "{} is still held by somebody {PATIENCE:?} after its consumer ended",
                    self.site.queue()
                )));
            }
            sleep(LOOK).await;
        }
    }

    /// Runs consumers until nothing is left in the queue; the last one's exit code.
    pub(crate) async fn drain(&self, part: Consume, tally: &mut Tally) -> Result<i32, LabError> {
        loop {
            let before = tally.lines.len();
            let code = self.drain_once(part.clone(), tally).await?;
            let left = self.at_rest().await?.ready;
            if code != 0 || left == 0 {
                return Ok(code);
            }
            if tally.lines.len() == before {
                let queue = self.site.queue();
                return Err(LabError::failed(format!("{left} messages stay in {queue}: nobody gets them")));
            }
        }
    }

    async fn drain_once(&self, part: Consume, tally: &mut Tally) -> Result<i32, LabError> {
        let mut process = self.start(Part::Consumer(part)).await?;
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last, mut asked) = (Instant::now(), false);
        loop {
            tokio::select! {
                line = process.line() => match line? {
                    Some(line) => {
                        self.note(tally, line);
                        last = Instant::now();
                    }
                    None => return process.exit_code().await,
                },
                _ = looks.tick() => {
                    if last.elapsed() > PATIENCE {
                        return Err(LabError::failed(format!("a consumer said nothing for {PATIENCE:?}")));
                    }
                    // What nobody confirmed keeps the queue from being empty, so this ends no run too early.
                    let quiet = tally.done >= tally.published || last.elapsed() > QUIET;
                    if !asked && quiet && self.outside()?.look().await?.ready == 0 {
                        process.terminate();
                        asked = true;
                    }
                }
            }
        }
    }
}
