//! URLs as configuration.

use std::time::Duration;

use aftercommit_core::ConfigError;
use percent_encoding::percent_decode_str;

use super::Config;

const WHAT: &str = "the queue's URL";

pub(super) fn parse(text: &str) -> Result<Config, ConfigError> {
    let rest = text.strip_prefix("sqlqueue:").or_else(|| text.strip_prefix("sqlite:"));
    let rest = rest.ok_or_else(|| invalid("it must start with sqlqueue: or sqlite:"))?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = match path.strip_prefix("//") {
        // What would stand between the second and the third slash is a host.
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => return Err(invalid("write sqlqueue:path or sqlqueue:///absolute/path")),
        None => path,
    };
    let mut config = Config::at(decoded(path)?)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        config = set(config, key, &decoded(value)?)?;
    }
    Ok(config)
}

fn set(config: Config, key: &str, value: &str) -> Result<Config, ConfigError> {
    match key {
        "visibility" => config.with_visibility(Duration::from_secs(number("visibility", value)?)),
        "poll" => config.with_poll(Duration::from_millis(number("poll", value)?)),
        "busy_timeout" => config.with_busy_timeout(Duration::from_millis(number("busy_timeout", value)?)),
        "publish_deadline" => {
            config.with_publish_deadline(Duration::from_millis(number("publish_deadline", value)?))
        }
        "max_message_size" => {
            let bytes = usize::try_from(number("max_message_size", value)?).unwrap_or(usize::MAX);
            config.with_max_message_size(bytes)
        }
        other => Err(invalid(format!("unknown query key {other:?}"))),
    }
}

fn number(what: &'static str, value: &str) -> Result<u64, ConfigError> {
    value.parse().map_err(|_| ConfigError::Invalid { what, reason: "it is not a whole number".to_owned() })
}

fn decoded(text: &str) -> Result<String, ConfigError> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| invalid("a percent-encoded part is not UTF-8"))
}

fn invalid(reason: impl Into<String>) -> ConfigError {
    ConfigError::Invalid { what: WHAT, reason: reason.into() }
}
