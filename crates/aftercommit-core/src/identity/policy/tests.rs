use proptest::prelude::*;

use super::*;
use crate::headers::Headers;

fn own(policy: &IdPolicy, message: &Message) -> Result<String, IdError> {
    policy.resolve(message).map(|resolved| match resolved {
        Resolved::Own(id) => id.as_str().to_owned(),
        Resolved::MakeUp => "made up".to_owned(),
    })
}

#[test]
fn native_takes_the_native_place_and_nothing_else() {
    let policy = IdPolicy::default();
    assert_eq!(own(&policy, &Message::new("{\"id\":1}")), Err(IdError::Missing));
    assert_eq!(own(&policy, &Message::new("").with_id("evt-1")), Ok("evt-1".into()));
    assert_eq!(own(&policy, &Message::new("").with_id("")), Err(IdError::Missing));
    assert_eq!(own(&policy, &Message::new("").with_id("   ")), Err(IdError::Missing));
    assert_eq!(own(&policy, &Message::new("").with_id(&b"\xff\xfe"[..])), Err(IdError::NotText));
}

#[test]
fn only_absence_is_made_up_for() {
    let policy = IdPolicy { missing: MissingId::MakeUp, ..IdPolicy::default() };
    assert_eq!(own(&policy, &Message::new("")), Ok("made up".into()));
    let long = Message::new("").with_id("x".repeat(256));
    assert_eq!(own(&policy, &long), Err(IdError::TooLong { found: 256, most: 255 }));
}

#[test]
fn a_json_field_is_a_string_or_a_whole_number() {
    let policy = IdPolicy::json("/order/id");
    assert_eq!(own(&policy, &Message::new(r#"{"order":{"id":"o-1"}}"#)), Ok("o-1".into()));
    assert_eq!(own(&policy, &Message::new(r#"{"order":{"id":17}}"#)), Ok("17".into()));
    assert_eq!(own(&policy, &Message::new(r#"{"order":{"id":1.5}}"#)), Err(IdError::NotText));
    assert_eq!(own(&policy, &Message::new(r#"{"order":{}}"#)), Err(IdError::Missing));
    assert_eq!(own(&policy, &Message::new("{")), Err(IdError::NotJson));
}

#[test]
fn cloud_events_are_found_in_both_modes() {
    let policy = IdPolicy { source: IdSource::CloudEvents, ..IdPolicy::default() };
    let mut binary = Message::new("");
    binary.headers.append("cloudEvents:source", "/orders");
    binary.headers.append("cloudEvents:id", "1");
    assert_eq!(own(&policy, &binary), Ok("/orders:1".into()));

    let mut structured = Message::new(r#"{"specversion":"1.0","source":"/orders","id":"1"}"#);
    assert_eq!(own(&policy, &structured), Err(IdError::Missing), "not without its content type");
    structured.native = Headers::from_iter([(
        "content_type".to_owned(),
        HeaderValue::text("application/cloudevents+json; charset=utf-8"),
    )]);
    assert_eq!(own(&policy, &structured), Ok("/orders:1".into()));
}

proptest! {
    #[test]
    fn joined_parts_are_never_merged(
        a in prop::collection::vec("[ab:\\\\]{1,6}", 2..4),
        b in prop::collection::vec("[ab:\\\\]{1,6}", 2..4),
    ) {
        prop_assert_eq!(join(&a) == join(&b), a == b);
    }

    #[test]
    fn resolving_never_panics(body in prop::collection::vec(any::<u8>(), 0..64), id in prop::option::of(prop::collection::vec(any::<u8>(), 0..300))) {
        let mut message = Message::new(body);
        message.id = id.map(Into::into);
        for policy in [IdPolicy::default(), IdPolicy::json("/id"), IdPolicy { source: IdSource::CloudEvents, ..IdPolicy::default() }] {
            if let Ok(Resolved::Own(id)) = policy.resolve(&message) {
                prop_assert!(id.as_str().len() <= 255 && !id.as_str().contains('\0'));
            }
        }
    }
}
