//! Making and checking what a subscription needs.

use aftercommit_core::{BrokerError, Finding, Subscription};

use crate::broken::Broken;
use crate::queue::Overflow;
use crate::state::{Route, State};

const DEAD_LETTERS: &str = ".dead";

/// The queue of a consumer's dead letters.
pub(crate) fn dead_letters(subscription: &Subscription, mixed: bool) -> String {
    if mixed {
        return format!("all{DEAD_LETTERS}");
    }
    format!("{}.{}{DEAD_LETTERS}", subscription.source, subscription.consumer)
}

pub(crate) fn is_dead_letters(queue: &str) -> bool {
    queue.ends_with(DEAD_LETTERS)
}

impl State {
    pub(crate) fn declare(&mut self, subscription: &Subscription) -> Result<(), BrokerError> {
        let dead = dead_letters(subscription, self.is(Broken::DeadLettersMixed));
        for name in [&subscription.source, &dead] {
            let other = self.queues.get(name).is_some_and(|queue| queue.limit.is_some());
            if other && !self.is(Broken::DeclareAcceptsOther) {
                return Err(BrokerError::Topology {
                    place: name.clone(),
                    reason: "it exists with a length limit, which was not asked for".into(),
                    source: None,
                });
            }
        }
        for name in [&subscription.source, &dead] {
            let empties = self.is(Broken::DeclareEmpties);
            let queue = self.queues.entry(name.clone()).or_default();
            if empties {
                queue.clear();
            }
        }
        for binding in &subscription.bindings {
            let route = Route { key: binding.key.clone(), queue: subscription.source.clone() };
            let routes = self.exchanges.entry(binding.from.clone()).or_default();
            if !routes.contains(&route) {
                routes.push(route);
            }
        }
        self.attach_all();
        Ok(())
    }

    pub(crate) fn check(&self, subscription: &Subscription) -> Vec<Finding> {
        let source = &subscription.source;
        let dead = dead_letters(subscription, self.is(Broken::DeadLettersMixed));
        let mut findings = Vec::new();
        for (name, blind) in [(source, Broken::CheckBlindToSource), (&dead, Broken::CheckBlindToDeadLetter)] {
            match self.queues.get(name).map(|queue| queue.limit) {
                None if !self.is(blind) => {
                    findings.push(Finding::refuse(name, "it does not exist", "declare it"));
                }
                Some(Some(limit))
                    if limit.overflow == Overflow::DropOldest && !self.is(Broken::CheckBlindToLimit) =>
                {
                    let what = format!("it drops its oldest message beyond {}", limit.most);
                    findings.push(Finding::refuse(name, what, "let it refuse new messages instead"));
                }
                None | Some(_) => {}
            }
        }
        for binding in &subscription.bindings {
            let route = Route { key: binding.key.clone(), queue: source.clone() };
            let bound = self.exchanges.get(&binding.from).is_some_and(|routes| routes.contains(&route));
            if !bound && !self.is(Broken::CheckBlindToRoute) {
                let what = format!("no route from {}/{}", binding.from, binding.key);
                findings.push(Finding::refuse(source, what, "bind it"));
            }
        }
        if self.is(Broken::CheckCriesWolf) {
            findings.push(Finding::warn(source, "there are wolves", "run"));
        }
        findings
    }
}
