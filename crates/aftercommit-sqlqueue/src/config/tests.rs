use std::path::Path;

use super::*;

fn refused(url: &str) -> String {
    Config::new(url).unwrap_err().to_string()
}

#[test]
fn paths_are_relative_absolute_or_encoded() {
    for (url, path) in [
        ("sqlqueue:queue.db", "queue.db"),
        ("sqlite:data/queue.db", "data/queue.db"),
        ("sqlqueue:/var/queue.db", "/var/queue.db"),
        ("sqlqueue:///var/queue.db", "/var/queue.db"),
        ("sqlqueue:///var/a%20b%3fc%25.db?poll=5", "/var/a b?c%.db"),
    ] {
        assert_eq!(Config::new(url).unwrap().path, Path::new(path), "{url}");
    }
}

#[test]
fn every_key_is_understood() {
    let url = "sqlqueue:q.db?visibility=7&poll=8&busy_timeout=9&publish_deadline=10&max_message_size=11";
    let config = Config::new(url).unwrap();
    assert_eq!(config.visibility, Duration::from_secs(7));
    assert_eq!(config.poll, Duration::from_millis(8));
    assert_eq!(config.busy_timeout, Duration::from_millis(9));
    assert_eq!(config.publish_deadline, Duration::from_millis(10));
    assert_eq!(config.max_message_size, 11);
}

#[test]
fn what_cannot_work_is_named() {
    assert!(refused("postgres://host/db").contains("sqlqueue:"));
    assert!(refused("sqlqueue:").contains("must not be empty"));
    assert!(refused("sqlqueue://host/path").contains("sqlqueue:///absolute/path"));
    assert!(refused("sqlqueue::memory:").contains("does not survive"));
    assert!(refused("sqlqueue:q.db?visiblity=3").contains("\"visiblity\""));
    assert!(refused("sqlqueue:q.db?poll=soon").contains("whole number"));
    for key in ["visibility", "poll", "busy_timeout", "publish_deadline", "max_message_size"] {
        assert!(refused(&format!("sqlqueue:q.db?{key}=0")).contains("must not be 0"), "{key}");
        assert!(refused(&format!("sqlqueue:q.db?{key}={}", u64::MAX)).contains("the most is"), "{key}");
    }
    let short = Config::at("q.db").unwrap().with_visibility(Duration::from_millis(99));
    assert!(matches!(short, Err(ConfigError::TooSmall { .. })));
}
