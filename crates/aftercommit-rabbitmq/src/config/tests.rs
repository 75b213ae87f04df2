use super::*;

#[test]
fn defaults_follow_the_uri_specification() {
    let config = Config::new("amqp://").unwrap();
    assert_eq!((config.address().as_str(), config.vhost.as_str()), ("localhost:5672", "/"));
    assert_eq!((config.user.as_str(), config.password.expose()), ("guest", "guest"));
    assert_eq!(Config::new("amqps://h").unwrap().port, 5671);
    assert_eq!(Config::new("amqp://h/").unwrap().vhost, "");
    assert_eq!(Config::new("amqp://h/%2f").unwrap().vhost, "/");
    assert_eq!(Config::new("amqp://[::1]:7").unwrap().address(), "[::1]:7");
    assert_eq!(Config::new("amqp://127.0.0.1:7/a%20b").unwrap().vhost, "a b");
}

#[test]
fn user_and_password_are_decoded() {
    let config = Config::new("amqp://us%40er:p%2Fw%3A@h/v").unwrap();
    assert_eq!((config.user.as_str(), config.password.expose()), ("us@er", "p/w:"));
}

#[test]
fn query_keys_are_known_or_refused() {
    let url = "amqps://h?heartbeat=7&connection_timeout=1500&auth_mechanism=EXTERNAL&cacertfile=/ca.pem\
               &certfile=/c.pem&keyfile=/k.pem&connection_name=x&queue_type=classic\
               &management=http%3A%2F%2Fops%3Asecret%40m%3A15672%2F";
    let config = Config::new(url).unwrap();
    assert_eq!(config.heartbeat, Duration::from_secs(7));
    assert_eq!(config.connect_timeout, Duration::from_millis(1500));
    assert_eq!((config.sasl, config.queue_type), (Sasl::External, QueueType::Classic));
    let management = config.management.as_ref().unwrap();
    assert_eq!((management.base.as_str(), management.user.as_str()), ("http://m:15672", "ops"));
    assert!(!format!("{config:?}").contains("secret"));
    assert!(config.authority.is_some() && config.client_certificate.is_some());
    for bad in [
        "hearbeat=7",
        "heartbeat=x",
        "heartbeat=0",
        "connection_timeout=0",
        "certfile=/c.pem",
        "queue_type=stream",
        "management=m:15672",
    ] {
        assert!(Config::new(&format!("amqp://h?{bad}")).is_err(), "{bad}");
    }
}

#[test]
fn what_is_no_amqp_url_is_refused() {
    for bad in ["", "h:5672", "http://h", "amqp:h", "amqp://h/a/b", "amqp://h:99999", "amqp://h/%ff"] {
        assert!(Config::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn zero_is_no_limit_and_refused() {
    let config = || Config::new("amqp://h").unwrap();
    assert!(config().with_heartbeat(Duration::ZERO).is_err());
    assert!(config().with_heartbeat(Duration::from_secs(70_000)).is_err());
    assert!(config().with_connect_timeout(Duration::ZERO).is_err());
    assert!(config().with_publish_deadline(Duration::ZERO).is_err());
    assert!(config().with_longest_hold(Duration::ZERO).is_err());
    assert!(config().with_max_message_size(0).is_err());
    assert!(config().with_starts(0).is_err());
}

#[test]
fn secrets_are_not_shown() {
    let config =
        Config::new("amqp://u:hunter2@h").unwrap().with_management("http://m:hunter3@h:15672/").unwrap();
    let shown = format!("{config:?}");
    assert!(!shown.contains("hunter"), "{shown}");
    assert!(shown.contains("http://h:15672\""), "{shown}");
    for bad in
        ["amqp://u:hunter2@h:99999", "amqp://u:hunter2@h?x=hunter2", "amqp://u:hunter2@h/a/b", "u:hunter2@h"]
    {
        let error = format!("{:?}", Config::new(bad).unwrap_err());
        assert!(!error.contains("hunter"), "{error}");
    }
}
