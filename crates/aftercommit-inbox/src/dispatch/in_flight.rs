//! Ids that are being worked on.

use std::collections::HashMap;

use aftercommit_core::{Delivery, MessageId};

use crate::job::{Job, Sorted};

/// Which ids the lanes are working on, and what came of the same ids meanwhile.
///
/// A broker hands a message out anew while its handler still runs: after a reconnect, or when its patience is over. The
/// redelivery would wait in the database for the claim of the first, and its whole lane with it. So it waits here.
#[derive(Debug, Default)]
pub(super) struct InFlight(HashMap<MessageId, Vec<Delivery>>);

impl InFlight {
    /// Enters the ids of a batch. What another lane is working on is taken out of it and waits.
    pub(super) fn enter(&mut self, sorted: &mut Sorted) -> Vec<MessageId> {
        let mut entered = Vec::with_capacity(sorted.jobs.len() + sorted.unreadable.len());
        let mut enter = |job: &mut Job| match self.0.get_mut(&job.id) {
            None => {
                self.0.insert(job.id.clone(), Vec::new());
                entered.push(job.id.clone());
                true
            }
            Some(waiting) => {
                // Each reconnect brings another one, and voids those before.
                waiting.retain(|delivery| !delivery.is_lost());
                waiting.append(&mut job.deliveries);
                false
            }
        };
        sorted.jobs.retain_mut(&mut enter);
        sorted.unreadable.retain_mut(|(job, _)| enter(job));
        entered
    }

    /// Takes ids out again, and answers what came of them meanwhile.
    pub(super) fn leave(&mut self, ids: &[MessageId]) -> Vec<Delivery> {
        ids.iter().filter_map(|id| self.0.remove(id)).flatten().collect()
    }

    /// Everything that waits.
    pub(super) fn take_waiting(&mut self) -> Vec<Delivery> {
        self.0.values_mut().flat_map(std::mem::take).collect()
    }
}
