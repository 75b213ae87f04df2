//! URLs as configuration. No error here repeats what it was given: it may contain a password.

use std::time::Duration;

use aftercommit_core::ConfigError;
use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::{Config, Management, QueueType, Sasl, Secret};

fn invalid(what: &'static str, reason: impl Into<String>) -> ConfigError {
    ConfigError::Invalid { what, reason: reason.into() }
}

pub(super) fn parse(text: &str) -> Result<Config, ConfigError> {
    const WHAT: &str = "the RabbitMQ URL";
    let url = Url::parse(text).map_err(|error| invalid(WHAT, error.to_string()))?;
    let tls = match url.scheme() {
        "amqp" => false,
        "amqps" => true,
        _ => return Err(invalid(WHAT, "it must start with amqp:// or amqps://")),
    };
    if url.cannot_be_a_base() || url.fragment().is_some() {
        return Err(invalid(WHAT, "it must look like amqp://user:password@host:port/vhost"));
    }
    let port = url.port().unwrap_or(if tls { 5671 } else { 5672 });
    let mut config = Config::at(host(&url, WHAT)?, port, tls);
    if !url.username().is_empty() {
        config.user = decoded(url.username(), WHAT)?;
    }
    if let Some(password) = url.password() {
        config.password = Secret::new(decoded(password, WHAT)?);
    }
    if let Some(vhost) = url.path().strip_prefix('/') {
        if vhost.contains('/') {
            return Err(invalid(WHAT, "a / in the virtual host is written %2f"));
        }
        config.vhost = decoded(vhost, WHAT)?;
    }
    if config.vhost.len() > 255 {
        return Err(ConfigError::TooLarge {
            what: "the virtual host's name",
            found: config.vhost.len(),
            most: 255,
        });
    }
    query(&url, config)
}

fn host(url: &Url, what: &'static str) -> Result<String, ConfigError> {
    match url.host() {
        None | Some(Host::Domain("")) => Ok("localhost".to_owned()),
        Some(Host::Domain(name)) => decoded(name, what),
        Some(Host::Ipv4(address)) => Ok(address.to_string()),
        Some(Host::Ipv6(address)) => Ok(address.to_string()),
    }
}

fn decoded(text: &str, what: &'static str) -> Result<String, ConfigError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| invalid(what, "a percent-encoded part is not UTF-8"))
}

fn query(url: &Url, mut config: Config) -> Result<Config, ConfigError> {
    let (mut certificate, mut key) = (None, None);
    for (name, value) in url.query_pairs() {
        match name.as_ref() {
            "heartbeat" => {
                config = config.with_heartbeat(Duration::from_secs(number("heartbeat", &value)?))?;
            }
            "connection_timeout" => {
                let timeout = Duration::from_millis(number("connection_timeout", &value)?);
                config = config.with_connect_timeout(timeout)?;
            }
            "auth_mechanism" => config.sasl = sasl(&value)?,
            "cacertfile" => config = config.with_authority(value.as_ref()),
            "certfile" => certificate = Some(value.into_owned()),
            "keyfile" => key = Some(value.into_owned()),
            "connection_name" => config.name = value.into_owned(),
            "queue_type" => config.queue_type = queue_type(&value)?,
            "management" => config = config.with_management(&value)?,
            // The key alone: a password may have slipped into a value.
            other => return Err(invalid("the RabbitMQ URL", format!("unknown query key {other:?}"))),
        }
    }
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(config.with_client_certificate(certificate, key)),
        (None, None) => Ok(config),
        _ => Err(invalid("the RabbitMQ URL", "certfile and keyfile go together")),
    }
}

fn number(what: &'static str, value: &str) -> Result<u64, ConfigError> {
    value.parse().map_err(|_| invalid(what, "it is not a whole number"))
}

fn sasl(value: &str) -> Result<Sasl, ConfigError> {
    match value.to_ascii_lowercase().as_str() {
        "plain" => Ok(Sasl::Plain),
        "external" => Ok(Sasl::External),
        _ => Err(invalid("auth_mechanism", "it is neither plain nor external")),
    }
}

fn queue_type(value: &str) -> Result<QueueType, ConfigError> {
    match value {
        "quorum" => Ok(QueueType::Quorum),
        "classic" => Ok(QueueType::Classic),
        _ => Err(invalid("queue_type", "it is neither quorum nor classic")),
    }
}

pub(super) fn management(text: &str, config: &Config) -> Result<Management, ConfigError> {
    const WHAT: &str = "the management URL";
    let mut url = Url::parse(text).map_err(|error| invalid(WHAT, error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid(WHAT, "it must start with http:// or https://"));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(invalid(WHAT, "it must have neither query nor fragment"));
    }
    let user = match url.username() {
        "" => config.user.clone(),
        user => decoded(user, WHAT)?,
    };
    let password = match url.password() {
        None => config.password.clone(),
        Some(password) => Secret::new(decoded(password, WHAT)?),
    };
    // Both fail only for URLs that cannot have a user, and http has one.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Ok(Management { base: url.as_str().trim_end_matches('/').to_owned(), user, password })
}
