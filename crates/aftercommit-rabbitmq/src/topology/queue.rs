//! The rules for one queue: which settings lose messages that were confirmed to their publishers.

use aftercommit_core::Finding;
use serde_json::Value;

/// A delivery limit where none is set: RabbitMQ 4's default for quorum queues.
const DEFAULT_LIMIT_SINCE_4: i64 = 20;

/// What a queue is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    /// It is consumed; a message may be started this often.
    Source { starts: u32 },
    /// It keeps what was given up on.
    DeadLetters,
}

/// Where a queue's own dead-lettering leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// There is none: what falls out of the queue is gone.
    None,
    /// An exchange without a binding, or a queue that is missing: the same.
    Nowhere,
    /// To some queue.
    Leads,
}

/// A queue as the management API shows it.
#[derive(Debug)]
pub(super) struct Queue<'a> {
    name: &'a str,
    json: &'a Value,
}

/// A setting and what to do to be rid of it.
struct Setting {
    value: Value,
    mend: String,
}

impl<'a> Queue<'a> {
    pub(super) const fn new(name: &'a str, json: &'a Value) -> Self {
        Self { name, json }
    }

    /// Absent until the first statistics of the queue are there.
    pub(super) fn shows_policies(&self) -> bool {
        !self.json["effective_policy_definition"].is_null()
    }

    pub(super) fn dead_letter_exchange(&self) -> Option<String> {
        self.text("dead-letter-exchange")
    }

    pub(super) fn dead_letter_routing_key(&self) -> Option<String> {
        self.text("dead-letter-routing-key")
    }

    /// An argument goes before a policy, except for numbers, where the lower one holds.
    fn text(&self, key: &str) -> Option<String> {
        self.settings(key).first().and_then(|setting| setting.value.as_str().map(str::to_owned))
    }

    fn number(&self, key: &str) -> Option<(i64, String)> {
        let settings = self.settings(key).into_iter();
        settings
            .filter_map(|setting| Some((setting.value.as_i64()?, setting.mend)))
            .min_by_key(|found| found.0)
    }

    fn settings(&self, key: &str) -> Vec<Setting> {
        let argument = format!("x-{key}");
        let by_argument = &self.json["arguments"][&argument];
        let by_policy = &self.json["effective_policy_definition"][key];
        let policies: Vec<_> =
            ["policy", "operator_policy"].iter().filter_map(|kind| self.json[kind].as_str()).collect();
        let mends = [
            format!("declare the queue anew without {argument}: arguments cannot be changed"),
            format!("take {key} out of the policy {}", policies.join(" or ")),
        ];
        let found = [by_argument, by_policy].into_iter().zip(mends).filter(|(value, _)| !value.is_null());
        found.map(|(value, mend)| Setting { value: value.clone(), mend }).collect()
    }

    fn is(&self, field: &str) -> bool {
        self.json[field] == Value::Bool(true)
    }

    fn is_quorum(&self) -> bool {
        self.json["type"] == "quorum"
    }

    fn place(&self) -> String {
        format!("queue {}", self.name)
    }
}

/// Everything about this queue that threatens the promise.
pub(super) fn findings(queue: &Queue<'_>, role: Role, target: Target, major: Option<u32>) -> Vec<Finding> {
    let mut findings = lifetime(queue);
    findings.extend(dropping(queue, target));
    findings.extend(delivery_limit(queue, role, target, major));
    if !queue.shows_policies() {
        findings.push(Finding::warn(
            queue.place(),
            "its policies cannot be seen yet: the broker shows them with its statistics",
            "check again in a few seconds",
        ));
    }
    findings
}

fn lifetime(queue: &Queue<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let refuse = |what, mend| Finding::refuse(queue.place(), what, mend);
    if queue.json["type"] == "stream" {
        findings.push(refuse(
            "it is a stream, which keeps what is acked",
            "consume from a quorum or classic queue",
        ));
    }
    if queue.json["durable"] == Value::Bool(false) {
        let what = "it is not durable: a restart of the broker loses its messages, confirmed or not";
        findings.push(refuse(what, "declare it durable, or as a quorum queue"));
    }
    if queue.is("auto_delete") {
        let what =
            "it is deleted with its messages when its last consumer leaves, as at every restart of ours";
        findings.push(refuse(what, "declare it without auto-delete"));
    }
    if queue.is("exclusive") {
        let what = "it is exclusive: deleted with its messages when one connection ends";
        findings.push(refuse(what, "declare it without exclusive"));
    }
    if let Some((after, mend)) = queue.number("expires") {
        let what =
            format!("it is deleted with its messages when unused for {after} ms, as in an outage of ours");
        findings.push(Finding::refuse(queue.place(), what, mend));
    }
    findings
}

/// Limits by which messages fall out of the queue that nobody has handled.
fn dropping(queue: &Queue<'_>, target: Target) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut finding = |what: String, mend: String| {
        findings.push(match target {
            Target::Leads => Finding::warn(
                queue.place(),
                format!("{what} to its dead-letter exchange instead of this consumer"),
                mend,
            ),
            Target::None | Target::Nowhere => Finding::refuse(
                queue.place(),
                format!("{what} out of it and are lost, though confirmed"),
                mend,
            ),
        });
    };
    if let Some((after, mend)) = queue.number("message-ttl") {
        finding(format!("messages older than {after} ms go"), mend);
    }
    // A publisher that is told "no" keeps its message; everything else drops one that was taken.
    let overflow = queue.text("overflow");
    if !overflow.is_some_and(|overflow| overflow.starts_with("reject-publish")) {
        for (key, unit) in [("max-length", "messages"), ("max-length-bytes", "bytes")] {
            if let Some((most, mend)) = queue.number(key) {
                let mend = format!("{mend}, or set overflow to reject-publish");
                finding(format!("the oldest of more than {most} {unit} go"), mend);
            }
        }
    }
    findings
}

/// Every closed connection counts as a delivery for all messages that it held.
fn delivery_limit(queue: &Queue<'_>, role: Role, target: Target, major: Option<u32>) -> Option<Finding> {
    if !queue.is_quorum() {
        return None;
    }
    let since_4 = major.is_some_and(|major| major >= 4);
    let default = || {
        let mend = "set the policy delivery-limit = -1, or declare it with x-delivery-limit = -1".to_owned();
        since_4.then_some((DEFAULT_LIMIT_SINCE_4, mend))
    };
    let (limit, mend) = queue.number("delivery-limit").or_else(default)?;
    if since_4 && limit < 0 {
        return None;
    }
    let refuse = |what: String, mend: String| Some(Finding::refuse(queue.place(), what, mend));
    if target != Target::Leads {
        let what = format!(
            "after {limit} deliveries a message is dropped: it has no dead-letter target that leads to a queue"
        );
        return refuse(what, mend);
    }
    match role {
        Role::Source { starts } if limit <= i64::from(starts) + 1 => {
            let what = format!(
                "after {limit} deliveries the broker takes a message away, before the {starts} starts it may have here"
            );
            refuse(what, format!("set delivery-limit above {}", i64::from(starts) + 1))
        }
        Role::Source { .. } => None,
        Role::DeadLetters => {
            let what =
                format!("a dead letter that was looked at {limit} times goes to its dead-letter exchange");
            Some(Finding::warn(queue.place(), what, mend))
        }
    }
}

#[cfg(test)]
mod tests;
