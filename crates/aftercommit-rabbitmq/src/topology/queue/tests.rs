use aftercommit_core::Severity;
use serde_json::json;

use super::*;

const SOURCE: Role = Role::Source { starts: 3 };

fn queue(arguments: &Value, policy: &Value) -> Value {
    json!({
        "type": "quorum", "durable": true, "auto_delete": false, "exclusive": false,
        "arguments": arguments, "policy": "p", "operator_policy": null, "effective_policy_definition": policy,
    })
}

fn worst(json: &Value, role: Role, target: Target, major: u32) -> Option<Severity> {
    let found = findings(&Queue::new("orders", json), role, target, Some(major));
    found.iter().map(|finding| finding.severity).max()
}

#[test]
fn a_plain_quorum_queue_is_fine_on_3() {
    assert_eq!(worst(&queue(&json!({}), &json!({})), SOURCE, Target::None, 3), None);
}

#[test]
fn what_drops_confirmed_messages_is_refused_or_leads_elsewhere() {
    for setting in ["message-ttl", "max-length", "max-length-bytes"] {
        for json in [
            queue(&json!({ format!("x-{setting}"): 5 }), &json!({})),
            queue(&json!({}), &json!({ setting: 5 })),
        ] {
            assert_eq!(worst(&json, SOURCE, Target::None, 3), Some(Severity::Refuse), "{setting}");
            assert_eq!(worst(&json, SOURCE, Target::Nowhere, 3), Some(Severity::Refuse), "{setting}");
            assert_eq!(worst(&json, SOURCE, Target::Leads, 3), Some(Severity::Warn), "{setting}");
            assert_eq!(worst(&json, Role::DeadLetters, Target::None, 3), Some(Severity::Refuse), "{setting}");
        }
    }
}

#[test]
fn a_limit_that_rejects_publishes_loses_nothing() {
    for overflow in ["reject-publish", "reject-publish-dlx"] {
        let json = queue(&json!({ "x-max-length": 5 }), &json!({ "overflow": overflow }));
        assert_eq!(worst(&json, SOURCE, Target::None, 3), None);
    }
    // The argument goes before the policy.
    let json = queue(
        &json!({ "x-max-length": 5, "x-overflow": "drop-head" }),
        &json!({ "overflow": "reject-publish" }),
    );
    assert_eq!(worst(&json, SOURCE, Target::None, 3), Some(Severity::Refuse));
}

#[test]
fn queues_that_end_by_themselves_are_refused() {
    for (field, value) in [("durable", false), ("auto_delete", true), ("exclusive", true)] {
        let mut json = queue(&json!({}), &json!({}));
        json[field] = value.into();
        assert_eq!(worst(&json, SOURCE, Target::None, 3), Some(Severity::Refuse), "{field}");
    }
    let json = queue(&json!({}), &json!({ "expires": 60_000 }));
    assert_eq!(worst(&json, SOURCE, Target::Leads, 3), Some(Severity::Refuse));
    let mut stream = queue(&json!({}), &json!({}));
    stream["type"] = "stream".into();
    assert_eq!(worst(&stream, SOURCE, Target::None, 3), Some(Severity::Refuse));
}

#[test]
fn a_delivery_limit_needs_room_and_a_target() {
    let limit = |n: i64| queue(&json!({ "x-delivery-limit": n }), &json!({}));
    assert_eq!(worst(&limit(4), SOURCE, Target::Leads, 3), Some(Severity::Refuse), "three starts and one");
    assert_eq!(worst(&limit(5), SOURCE, Target::Leads, 3), None);
    assert_eq!(worst(&limit(50), SOURCE, Target::None, 3), Some(Severity::Refuse));
    assert_eq!(worst(&limit(50), SOURCE, Target::Nowhere, 3), Some(Severity::Refuse));
    assert_eq!(worst(&limit(50), Role::DeadLetters, Target::Leads, 3), Some(Severity::Warn));
    // The lower of argument and policy holds.
    let json = queue(&json!({ "x-delivery-limit": 50 }), &json!({ "delivery-limit": 2 }));
    assert_eq!(worst(&json, SOURCE, Target::Leads, 3), Some(Severity::Refuse));
    let mut classic = limit(1);
    classic["type"] = "classic".into();
    assert_eq!(worst(&classic, SOURCE, Target::None, 3), None, "classic queues do not count");
}

#[test]
fn minus_one_is_no_limit_since_4_and_loses_at_once_before() {
    let json = queue(&json!({ "x-delivery-limit": -1 }), &json!({}));
    assert_eq!(worst(&json, SOURCE, Target::None, 4), None);
    assert_eq!(worst(&json, SOURCE, Target::None, 3), Some(Severity::Refuse));
    let plain = queue(&json!({}), &json!({}));
    assert_eq!(worst(&plain, SOURCE, Target::None, 4), Some(Severity::Refuse), "20 by default");
    assert_eq!(worst(&plain, SOURCE, Target::Leads, 4), None, "20 is enough room");
}

#[test]
fn unseen_policies_are_said() {
    let mut json = queue(&json!({}), &json!({}));
    json.as_object_mut().unwrap().remove("effective_policy_definition");
    assert_eq!(worst(&json, SOURCE, Target::None, 3), Some(Severity::Warn));
}

#[test]
fn a_finding_names_the_policy_to_change() {
    let json = queue(&json!({}), &json!({ "message-ttl": 5 }));
    let found = findings(&Queue::new("orders", &json), SOURCE, Target::None, Some(3));
    assert!(found[0].mend.contains("policy p") && found[0].mend.contains("message-ttl"), "{}", found[0]);
}
