//! What log lines add up to.

use std::collections::BTreeSet;

use crate::LogLine;

/// Counts the lines of one run, over all its processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) published: u64,
    pub(crate) published_ids: BTreeSet<String>,
    pub(crate) received: u64,
    pub(crate) received_ids: BTreeSet<String>,
    pub(crate) redelivered: u64,
    pub(crate) duplicates: u64,
    pub(crate) done: u64,
    /// Deaths as planned.
    pub(crate) crashes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, line: LogLine) {
        let id = line.get("messageId").to_owned();
        match line.get("status") {
            "confirmed" => {
                self.published += 1;
                self.published_ids.insert(id);
            }
            "received" => {
                self.received += 1;
                let again = !self.received_ids.insert(id);
                // Where the broker has no flag, the second receipt of an id counts.
                let told = line.get("redelivered");
                self.redelivered += u64::from(told == "true" || (told == "unknown" && again));
            }
            "duplicate_skipped" => self.duplicates += 1,
            "done" => self.done += 1,
            "crash_injected" => self.crashes += 1,
            _ => {}
        }
        self.lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_without_a_flag_has_its_second_receipts_counted() {
        let mut tally = Tally::default();
        for (id, flag) in [("a", "false"), ("a", "true"), ("b", "unknown"), ("b", "unknown"), ("b", "false")]
        {
            let line = LogLine::of("consumer").with("messageId", id).with("redelivered", flag);
            tally.add(line.with("status", "received"));
        }
        assert_eq!((tally.received, tally.received_ids.len(), tally.redelivered), (5, 2, 2));
    }
}
