//! Names, and what a check has found.

use aftercommit_core::{Binding, Destination, Finding, Subscription};

use crate::table::Found;

/// The queue of one consumer's dead letters. Each consumer has its own, since consumers of one queue give up on different
/// messages.
pub(crate) fn dead_letter_queue(subscription: &Subscription) -> String {
    format!("{}.{}.dead", subscription.source, subscription.consumer)
}

/// The default exchange leads to every queue by its name.
pub(crate) fn dead_letter(subscription: &Subscription) -> Destination {
    Destination::new("").with_routing_key(dead_letter_queue(subscription))
}

/// What threatens the promise, of what was found in the file.
pub(crate) fn findings(subscription: &Subscription, found: &Found) -> Vec<Finding> {
    let declare = "declare the subscription";
    let mut findings = Vec::new();
    let source = format!("queue {}", subscription.source);
    if !found.source {
        findings.push(Finding::refuse(&source, "it is missing: nothing can be consumed", declare));
    }
    if !found.dead_letters {
        let what = "it is missing: messages that are given up on have no place to go and stay in the source";
        findings.push(Finding::refuse(format!("queue {}", dead_letter_queue(subscription)), what, declare));
    }
    for Binding { from, key } in &found.unbound {
        let what =
            format!("no route from exchange {from:?} with key {key:?}: publishers fail or reach others only");
        findings.push(Finding::refuse(&source, what, declare));
    }
    if found.shared {
        findings.push(Finding::warn(
            "the queue file",
            "it holds tables that are not the queue's: their writers and the queue's wait for each other",
            "give the queue a file of its own",
        ));
    }
    findings
}
