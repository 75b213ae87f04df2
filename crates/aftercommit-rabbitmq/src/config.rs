//! How to reach a broker and how to behave towards it.

mod secret;
mod url;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use aftercommit_core::ConfigError;

pub(crate) use secret::Secret;

/// The queue type of what [`Broker::declare`](aftercommit_core::Broker::declare) makes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueType {
    /// Replicated, always durable.
    #[default]
    Quorum,
    /// On one node; declared durable.
    Classic,
}

impl QueueType {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Quorum => "quorum",
            Self::Classic => "classic",
        }
    }
}

/// How the client proves who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sasl {
    /// User name and password.
    #[default]
    Plain,
    /// The TLS client certificate ([`Config::with_client_certificate`]).
    External,
}

/// Settings of a connection to RabbitMQ. Secrets are shown by neither `Debug` nor any error.
#[derive(Clone)]
pub struct Config {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: bool,
    pub(crate) vhost: String,
    pub(crate) user: String,
    pub(crate) password: Secret,
    pub(crate) sasl: Sasl,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) client_certificate: Option<(PathBuf, PathBuf)>,
    pub(crate) name: String,
    pub(crate) heartbeat: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) publish_deadline: Duration,
    pub(crate) longest_hold: Duration,
    pub(crate) queue_type: QueueType,
    pub(crate) delivery_limit: Option<i32>,
    pub(crate) starts: u32,
    pub(crate) max_message_size: usize,
    pub(crate) management: Option<Management>,
}

/// The management API, used to look at what AMQP cannot show.
#[derive(Clone)]
pub(crate) struct Management {
    /// Without user, password and trailing slash.
    pub(crate) base: String,
    pub(crate) user: String,
    pub(crate) password: Secret,
}

impl Config {
    /// The defaults for a URL: `amqp://user:password@host:port/vhost`, or `amqps://` for TLS.
    ///
    /// User and password default to `guest`, the host to `localhost`, the port to 5672 (TLS: 5671).
    /// As RabbitMQ's URI specification has it, no path means the virtual host `/` and the path `/`
    /// means the virtual host with the empty name; `/` itself is written `%2f`.
    ///
    /// Query keys: `heartbeat` (seconds), `connection_timeout` (milliseconds), `auth_mechanism`
    /// (`plain`, `external`), `cacertfile`, `certfile`, `keyfile`, `connection_name`, `queue_type`
    /// (`quorum`, `classic`), `management` (as [`with_management`](Self::with_management),
    /// percent-encoded). Any other key is an error.
    ///
    /// # Errors
    /// [`ConfigError`] when the URL cannot be understood; its text never contains the URL.
    pub fn new(amqp_url: &str) -> Result<Self, ConfigError> {
        url::parse(amqp_url)
    }

    fn at(host: String, port: u16, tls: bool) -> Self {
        Self {
            host,
            port,
            tls,
            vhost: "/".to_owned(),
            user: "guest".to_owned(),
            password: Secret::new("guest"),
            sasl: Sasl::Plain,
            authority: None,
            client_certificate: None,
            name: "aftercommit".to_owned(),
            heartbeat: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            publish_deadline: Duration::from_secs(10),
            longest_hold: Duration::from_secs(600),
            queue_type: QueueType::Quorum,
            delivery_limit: None,
            starts: 3,
            max_message_size: 128 << 20,
            management: None,
        }
    }

    /// Sets user and password, for callers that keep them apart from the URL.
    #[must_use]
    pub fn with_credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.user = user.into();
        self.password = Secret::new(password);
        self
    }

    /// Sets how the client proves who it is.
    #[must_use]
    pub const fn with_sasl(mut self, sasl: Sasl) -> Self {
        self.sasl = sasl;
        self
    }

    /// Trusts the certificates in this PEM file besides those of the operating system.
    #[must_use]
    pub fn with_authority(mut self, pem: impl Into<PathBuf>) -> Self {
        self.authority = Some(pem.into());
        self
    }

    /// Shows the server this certificate; both files are PEM.
    #[must_use]
    pub fn with_client_certificate(
        mut self,
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Self {
        self.client_certificate = Some((certificate.into(), key.into()));
        self
    }

    /// Sets the name under which the broker lists the connections (default `aftercommit`).
    #[must_use]
    pub fn with_connection_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the heartbeat (default 10 s, whole seconds). The lower of ours and the server's holds; a
    /// peer that is silent for twice as long is taken for dead.
    ///
    /// # Errors
    /// [`ConfigError`] below one second (0 would turn it off) or above 65,535 s.
    pub fn with_heartbeat(mut self, heartbeat: Duration) -> Result<Self, ConfigError> {
        const WHAT: &str = "the heartbeat in seconds";
        const MOST: usize = u16::MAX as usize;
        match usize::try_from(heartbeat.as_secs()).unwrap_or(usize::MAX) {
            0 => return Err(ConfigError::Zero { what: WHAT }),
            found if found > MOST => return Err(ConfigError::TooLarge { what: WHAT, found, most: MOST }),
            _ => self.heartbeat = heartbeat,
        }
        Ok(self)
    }

    /// Sets how long opening a connection may take, handshakes included (default 5 s).
    ///
    /// # Errors
    /// [`ConfigError::Zero`].
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Result<Self, ConfigError> {
        self.connect_timeout = not_zero(timeout, "the connect timeout")?;
        Ok(self)
    }

    /// Sets by when a publish must be answered (default 10 s); after it the answer is `Unknown`.
    ///
    /// # Errors
    /// [`ConfigError::Zero`].
    pub fn with_publish_deadline(mut self, deadline: Duration) -> Result<Self, ConfigError> {
        self.publish_deadline = not_zero(deadline, "the publish deadline")?;
        Ok(self)
    }

    /// Sets the longest delay for which a delivery may be given back (default 10 min). It waits
    /// unsettled in the client, so this must stay well below the broker's `consumer_timeout` (30 min
    /// by default), which counts from the first handing out over all delays together.
    ///
    /// # Errors
    /// [`ConfigError::Zero`].
    pub fn with_longest_hold(mut self, longest: Duration) -> Result<Self, ConfigError> {
        self.longest_hold = not_zero(longest, "the longest hold")?;
        Ok(self)
    }

    /// Sets the type of queues that are declared (default quorum). Dead letters are always quorum.
    #[must_use]
    pub const fn with_queue_type(mut self, queue_type: QueueType) -> Self {
        self.queue_type = queue_type;
        self
    }

    /// Declares source queues with this `x-delivery-limit`. Leave it out for RabbitMQ 3, where quorum
    /// queues have none; RabbitMQ 4 has 20 by default, and `-1` there means none.
    #[must_use]
    pub const fn with_delivery_limit(mut self, limit: i32) -> Self {
        self.delivery_limit = Some(limit);
        self
    }

    /// Sets how often a message may be started before the consumer gives up on it (default 3). A
    /// queue's delivery limit is refused unless it is above this number plus one.
    ///
    /// # Errors
    /// [`ConfigError::Zero`].
    pub fn with_starts(mut self, starts: u32) -> Result<Self, ConfigError> {
        if starts == 0 {
            return Err(ConfigError::Zero { what: "the starts of a message" });
        }
        self.starts = starts;
        Ok(self)
    }

    /// Sets the server's `max_message_size` in bytes (default 128 MiB, as the server's). Larger bodies
    /// are refused before they are sent, since the broker answers them by closing the channel.
    ///
    /// # Errors
    /// [`ConfigError::Zero`].
    pub fn with_max_message_size(mut self, bytes: usize) -> Result<Self, ConfigError> {
        if bytes == 0 {
            return Err(ConfigError::Zero { what: "the largest message" });
        }
        self.max_message_size = bytes;
        Ok(self)
    }

    /// Lets [`Broker::check`](aftercommit_core::Broker::check) look at bindings, arguments and policies
    /// by the management API: `http://user:password@host:15672`. User and password default to those
    /// of AMQP as they are now.
    ///
    /// # Errors
    /// [`ConfigError`] when the URL cannot be understood.
    pub fn with_management(mut self, management_url: &str) -> Result<Self, ConfigError> {
        self.management = Some(url::management(management_url, &self)?);
        Ok(self)
    }

    /// Host and port, for messages.
    pub(crate) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

fn not_zero(duration: Duration, what: &'static str) -> Result<Duration, ConfigError> {
    if duration.is_zero() { Err(ConfigError::Zero { what }) } else { Ok(duration) }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("address", &self.address())
            .field("tls", &self.tls)
            .field("vhost", &self.vhost)
            .field("user", &self.user)
            .field("password", &self.password)
            .field("sasl", &self.sasl)
            .field("queue_type", &self.queue_type)
            .field("heartbeat", &self.heartbeat)
            .field("connect_timeout", &self.connect_timeout)
            .field("publish_deadline", &self.publish_deadline)
            .field("longest_hold", &self.longest_hold)
            .field("management", &self.management.as_ref().map(|m| &m.base))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
