//! Writing: what waits at the same time shares one transaction and one sync of the disk.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::oneshot;

use super::seat::Seat;
use super::{File, open};
use crate::error::{FileError, Trouble};

/// The most that share a transaction: other processes wait meanwhile.
const MOST: usize = 100;

/// Something to be written. It may be run more than once, each time in another transaction.
#[async_trait]
pub(crate) trait Write: Send + 'static {
    type Answer: Send;

    /// Whether it need not be done any more when nobody waits for its answer.
    const NEEDS_LISTENER: bool = false;

    async fn run(&self, conn: &mut SqliteConnection) -> Result<Self::Answer, sqlx::Error>;

    /// Whether the answer means that a message may be visible that was not.
    fn shows(_answer: &Self::Answer) -> bool {
        false
    }
}

/// A [`Write`] with its answer, without their types.
#[async_trait]
pub(super) trait Job: Send {
    fn is_wanted(&self) -> bool;
    async fn run(&mut self, conn: &mut SqliteConnection) -> Result<(), sqlx::Error>;
    fn shows(&self) -> bool;
    fn finish(self: Box<Self>, outcome: Result<(), FileError>);
}

struct Waiting<W: Write> {
    write: W,
    answer: Option<W::Answer>,
    listener: oneshot::Sender<Result<W::Answer, FileError>>,
}

#[async_trait]
impl<W: Write + Sync> Job for Waiting<W> {
    fn is_wanted(&self) -> bool {
        !W::NEEDS_LISTENER || !self.listener.is_closed()
    }

    async fn run(&mut self, conn: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        self.answer = Some(self.write.run(conn).await?);
        Ok(())
    }

    fn shows(&self) -> bool {
        self.answer.as_ref().is_some_and(W::shows)
    }

    fn finish(self: Box<Self>, outcome: Result<(), FileError>) {
        let Self { answer, listener, .. } = *self;
        let answer = match (outcome, answer) {
            (Ok(()), Some(answer)) => Ok(answer),
            (Err(error), _) => Err(error),
            // A job that was not run has no good outcome; its listener hears that it was dropped.
            (Ok(()), None) => return,
        };
        // Whoever asked may be gone.
        let _ = listener.send(answer);
    }
}

/// A transaction that failed, and whether that was before anything could be committed.
struct Failed {
    error: FileError,
    undone: bool,
}

impl File {
    /// Writes and waits until it is on the disk. Once asked for it is done, or not, whether or not this is waited for.
    pub(crate) async fn write<W: Write + Sync>(self: &Arc<Self>, write: W) -> Result<W::Answer, FileError> {
        let (listener, answer) = oneshot::channel();
        let job = Box::new(Waiting { write, answer: None, listener });
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(job);
        // A task of its own: nobody who drops a future may leave a transaction open.
        tokio::spawn(Arc::clone(self).drain());
        answer.await.unwrap_or_else(|_| Err(FileError::new(&self.path, Trouble::Interrupted)))
    }

    async fn drain(self: Arc<Self>) {
        let mut seat = self.writer.lock().await;
        let mut jobs: Vec<_> = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let count = waiting.len().min(MOST);
            waiting.drain(..count).collect()
        };
        jobs.retain(|job| job.is_wanted());
        match self.transaction(&mut seat, &mut jobs).await {
            // One of them may be too much for the disk, or for SQLite: the others shall not suffer.
            Err(failed) if failed.undone && jobs.len() > 1 && failed.error.is_of_one() => {
                for job in jobs {
                    let mut alone = vec![job];
                    let outcome = self.transaction(&mut seat, &mut alone).await;
                    self.finish(alone, outcome);
                }
            }
            outcome => self.finish(jobs, outcome),
        }
    }

    fn finish(&self, jobs: Vec<Box<dyn Job>>, outcome: Result<(), Failed>) {
        let outcome = outcome.map_err(|failed| failed.error);
        let shows = outcome.is_ok() && jobs.iter().any(|job| job.shows());
        for job in jobs {
            job.finish(outcome.clone());
        }
        if shows {
            self.changes.send_modify(|count| *count = count.wrapping_add(1));
        }
    }

    async fn transaction(&self, seat: &mut Seat, jobs: &mut [Box<dyn Job>]) -> Result<(), Failed> {
        if jobs.is_empty() {
            return Ok(());
        }
        let mut conn = seat.take(self).await.map_err(|error| Failed { error, undone: true })?;
        let (error, undone) = match all(&mut conn, jobs).await {
            Ok(()) => match sqlx::raw_sql("COMMIT").execute(&mut conn).await {
                Ok(_) => {
                    return seat.put_back(self, conn).map_err(|error| Failed { error, undone: false });
                }
                Err(error) => (error, false),
            },
            Err(error) => (error, true),
        };
        // Rolls back what is open.
        open::close(conn).await;
        Err(Failed { error: FileError::of(&self.path, error), undone })
    }
}

/// Write intent at once: a transaction that reads first and writes later is refused without waiting.
async fn all(conn: &mut SqliteConnection, jobs: &mut [Box<dyn Job>]) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut *conn).await?;
    for job in jobs {
        job.run(conn).await?;
    }
    Ok(())
}

impl FileError {
    /// Whether one of several that share a transaction may be to blame.
    const fn is_of_one(&self) -> bool {
        matches!(self.trouble, Trouble::Full | Trouble::Other)
    }
}
