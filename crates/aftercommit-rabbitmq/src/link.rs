//! One AMQP connection of ours.

use std::sync::Arc;
use std::time::Duration;

use aftercommit_core::{BrokerError, ConfigError};
use lapin::tcp::{AsyncTcpStream, OwnedIdentity, OwnedTLSConfig};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism};
use lapin::{Channel, Connection, ConnectionProperties};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::config::{Config, Sasl};
use crate::error::{self, PRODUCT};
use crate::wire::{self, Seen};

/// How long a farewell may take before the socket is cut.
const FAREWELL: Duration = Duration::from_secs(2);

/// A connection that ends at the latest when this is dropped: lapin alone would keep its thread and
/// socket for as long as the peer keeps quiet.
pub(crate) struct Link {
    connection: Connection,
    seen: Arc<Seen>,
    cut: CancellationToken,
    _cut_on_drop: DropGuard,
}

impl Link {
    /// Opens a connection, named after what it is for.
    pub(crate) async fn open(config: &Config, purpose: &str) -> Result<Self, BrokerError> {
        let tls = tls(config).await?.map(Arc::new);
        let cut = CancellationToken::new();
        let (end, guard) = (cut.clone(), cut.clone().drop_guard());
        let seen = Arc::new(Seen::default());
        let host = config.host.clone();
        let port = config.port;
        let properties = ConnectionProperties::default()
            .with_connection_name(format!("{} ({purpose})", config.name).into())
            .with_client_property("product".into(), "aftercommit".into())
            .with_client_property("version".into(), env!("CARGO_PKG_VERSION").into());
        let notes = Arc::clone(&seen);
        let connector = async move |_: AMQPUri, _| {
            let opening = wire::open((&host, port), tls.as_deref(), cut.clone(), Arc::clone(&notes));
            let cut_short = || Err(std::io::Error::from(std::io::ErrorKind::ConnectionAborted));
            Ok(AsyncTcpStream::Plain(cut.run_until_cancelled(opening).await.unwrap_or_else(cut_short)?))
        };
        let opening = Connection::connector(uri(config), wire::runtime(), connector, properties);
        match timeout(config.connect_timeout, opening).await {
            Ok(Ok(connection)) => Ok(Self { connection, seen, cut: end, _cut_on_drop: guard }),
            Ok(Err(error)) => Err(error::connecting(config.address(), error)),
            Err(_) => Err(unanswered(config)),
        }
    }

    /// Opens a channel. The answer is bounded by the connect timeout of the configuration.
    pub(crate) async fn channel(&self, config: &Config) -> Result<Channel, BrokerError> {
        let opening = timeout(config.connect_timeout, self.connection.create_channel()).await;
        match opening {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(error)) => Err(error::connecting(config.address(), error)),
            Err(_) => Err(unanswered(config)),
        }
    }

    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) const fn seen(&self) -> &Arc<Seen> {
        &self.seen
    }

    /// Does one thing on a channel of its own, since a failure ends the channel.
    pub(crate) async fn on_channel<T>(
        &self,
        config: &Config,
        act: impl AsyncFnOnce(&Channel) -> Result<T, lapin::Error>,
    ) -> Result<Result<T, lapin::Error>, BrokerError> {
        let channel = self.channel(config).await?;
        let Ok(acted) = timeout(config.connect_timeout, act(&channel)).await else {
            return Err(unanswered(config));
        };
        close(&channel).await;
        Ok(acted)
    }

    /// Says farewell if the broker still listens, and ends the connection in any case.
    pub(crate) async fn close(&self, channel: Option<&Channel>) {
        // lapin takes a connection that is closed over an open channel for broken.
        if let Some(channel) = channel {
            close(channel).await;
        }
        if self.connection.status().connected() {
            // Without an answer the socket is cut all the same.
            let _ = timeout(FAREWELL, self.connection.close(200, "closed".into())).await;
        }
        self.cut.cancel();
    }
}

async fn close(channel: &Channel) {
    if channel.status().connected() {
        // A channel that does not close in time ends with its connection.
        let _ = timeout(FAREWELL, channel.close(200, "closed".into())).await;
    }
}

fn unanswered(config: &Config) -> BrokerError {
    BrokerError::Unreachable {
        product: PRODUCT,
        address: config.address(),
        reason: format!("no answer within {:?}", config.connect_timeout),
        source: None,
    }
}

fn uri(config: &Config) -> AMQPUri {
    AMQPUri {
        scheme: if config.tls { AMQPScheme::AMQPS } else { AMQPScheme::AMQP },
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: config.user.clone(),
                password: config.password.expose().to_owned(),
            },
            host: config.host.clone(),
            port: config.port,
        },
        vhost: config.vhost.clone(),
        query: AMQPQueryString {
            heartbeat: u16::try_from(config.heartbeat.as_secs()).ok(),
            auth_mechanism: Some(match config.sasl {
                Sasl::Plain => SASLMechanism::Plain,
                Sasl::External => SASLMechanism::External,
            }),
            ..AMQPQueryString::default()
        },
    }
}

/// Reads the files anew for each connection, so that renewed certificates are taken up.
async fn tls(config: &Config) -> Result<Option<OwnedTLSConfig>, BrokerError> {
    if !config.tls {
        return Ok(None);
    }
    let config = config.clone();
    let read = tokio::task::spawn_blocking(move || {
        let read = |what, path: &std::path::Path| {
            std::fs::read(path).map_err(|error| ConfigError::Invalid {
                what,
                reason: format!("{} cannot be read: {error}", path.display()),
            })
        };
        let mut tls = OwnedTLSConfig::default();
        if let Some(path) = &config.authority {
            let pem = read("the authority's certificate", path)?;
            tls.cert_chain = Some(String::from_utf8_lossy(&pem).into_owned());
        }
        if let Some((certificate, key)) = &config.client_certificate {
            let pem = read("the client certificate", certificate)?;
            let key = read("the client certificate's key", key)?;
            tls.identity = Some(OwnedIdentity::PKCS8 { pem, key });
        }
        Ok::<_, ConfigError>(tls)
    });
    match read.await {
        Ok(tls) => Ok(Some(tls?)),
        Err(error) => {
            let action = "read the TLS files";
            Err(BrokerError::Backend { product: PRODUCT, action, source: Box::new(error) })
        }
    }
}
