//! Where the queue is and how to behave towards it.

mod url;

use std::path::PathBuf;
use std::time::Duration;

use aftercommit_core::ConfigError;

/// Settings of a queue in an SQLite file.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) path: PathBuf,
    pub(crate) visibility: Duration,
    pub(crate) poll: Duration,
    pub(crate) busy_timeout: Duration,
    pub(crate) publish_deadline: Duration,
    pub(crate) max_message_size: usize,
}

impl Config {
    /// The defaults for a URL: `sqlqueue:path/to/queue.db` or `sqlqueue:///absolute/path/queue.db`; `sqlite:` instead of
    /// `sqlqueue:` means the same. In the path `%`, `?` are written `%25`, `%3f`.
    ///
    /// Query keys: `visibility` (seconds), `poll`, `busy_timeout`, `publish_deadline` (milliseconds), `max_message_size`
    /// (bytes). Any other key is an error.
    ///
    /// # Errors
    /// [`ConfigError`] when the URL cannot be understood.
    pub fn new(url: &str) -> Result<Self, ConfigError> {
        url::parse(url)
    }

    /// The defaults for a file.
    ///
    /// # Errors
    /// [`ConfigError`] for no path, or for a database in memory: nothing would survive the process.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        const WHAT: &str = "the queue file's path";
        let path = path.into();
        if path.as_os_str().is_empty() {
            return Err(ConfigError::Empty { what: WHAT });
        }
        if path.as_os_str() == ":memory:" {
            let reason = "a queue in memory does not survive its process: name a file".to_owned();
            return Err(ConfigError::Invalid { what: WHAT, reason });
        }
        Ok(Self {
            path,
            visibility: Duration::from_secs(30),
            poll: Duration::from_millis(250),
            busy_timeout: Duration::from_secs(5),
            publish_deadline: Duration::from_secs(10),
            max_message_size: 4 << 20,
        })
    }

    /// Sets the visibility timeout (default 30 s): after it the messages of a process that died come again. A process that
    /// lives renews its leases every third of it, however long a handler takes.
    ///
    /// # Errors
    /// [`ConfigError`] below 100 ms and above a day.
    pub fn with_visibility(mut self, visibility: Duration) -> Result<Self, ConfigError> {
        const WHAT: &str = "the visibility timeout in milliseconds";
        self.visibility = between(visibility, WHAT, 100, 24 * 3600 * 1000)?;
        Ok(self)
    }

    /// Sets the longest pause between two looks for messages of other processes (default 250 ms). Looks come every 20 ms
    /// after a message, and ever rarer the longer none comes. What this process publishes is noticed at once.
    ///
    /// # Errors
    /// [`ConfigError`] for 0 and above a minute.
    pub fn with_poll(mut self, longest: Duration) -> Result<Self, ConfigError> {
        self.poll = between(longest, "the longest poll pause in milliseconds", 1, 60_000)?;
        Ok(self)
    }

    /// Sets how long a write waits for the write of another process (default 5 s). The first configuration of a file in a
    /// process decides.
    ///
    /// # Errors
    /// [`ConfigError`] for 0 and above a minute.
    pub fn with_busy_timeout(mut self, timeout: Duration) -> Result<Self, ConfigError> {
        self.busy_timeout = between(timeout, "the busy timeout in milliseconds", 1, 60_000)?;
        Ok(self)
    }

    /// Sets by when a publish is answered (default 10 s); after it the answer is `Unknown`.
    ///
    /// # Errors
    /// [`ConfigError`] for 0 and above an hour.
    pub fn with_publish_deadline(mut self, deadline: Duration) -> Result<Self, ConfigError> {
        self.publish_deadline = between(deadline, "the publish deadline in milliseconds", 1, 3_600_000)?;
        Ok(self)
    }

    /// Sets the most bytes of a message, headers included (default 4 MiB).
    ///
    /// # Errors
    /// [`ConfigError`] for 0 and above 512 MiB, which SQLite could not keep.
    pub fn with_max_message_size(mut self, bytes: usize) -> Result<Self, ConfigError> {
        const WHAT: &str = "the largest message in bytes";
        const MOST: usize = 512 << 20;
        match bytes {
            0 => return Err(ConfigError::Zero { what: WHAT }),
            found if found > MOST => return Err(ConfigError::TooLarge { what: WHAT, found, most: MOST }),
            _ => self.max_message_size = bytes,
        }
        Ok(self)
    }
}

fn between(
    duration: Duration,
    what: &'static str,
    least: usize,
    most: usize,
) -> Result<Duration, ConfigError> {
    match usize::try_from(duration.as_millis()).unwrap_or(usize::MAX) {
        0 => Err(ConfigError::Zero { what }),
        found if found < least => {
            let because = "a lease that is renewed every third of it";
            Err(ConfigError::TooSmall { what, found, least, because })
        }
        found if found > most => Err(ConfigError::TooLarge { what, found, most }),
        _ => Ok(duration),
    }
}

#[cfg(test)]
mod tests;
