//! Which orders are sent in which order, and where consumers die.

use serde::{Deserialize, Serialize};

use crate::order::Order;

/// Where a consumer's process ends itself with 137.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CrashAt {
    /// The transaction is committed, the broker was not told.
    BeforeConfirm,
    /// The handler has written, inside the transaction.
    InHandler,
}

/// One process's death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Crash {
    pub(crate) at: CrashAt,
    /// At the nth arrival of this process, from 0.
    pub(crate) nth: usize,
}

/// What the demonstration does. The same seed is the same plan, on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) sends: Vec<Order>,
    pub(crate) crashes: Vec<Crash>,
}

/// How many orders the demonstration has.
pub(crate) const ORDERS: u32 = 1000;
/// How many of them are sent twice.
pub(crate) const TWICE: usize = 200;

impl Plan {
    pub(crate) fn of_seed(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let mut sends: Vec<Order> = (1..=ORDERS).map(Order).collect();
        dice.shuffle(&mut sends);
        let twice: Vec<Order> = sends[..TWICE].to_vec();
        dice.shuffle(&mut sends);
        for order in twice {
            let at = dice.below(sends.len() + 1);
            sends.insert(at, order);
        }
        let mut kinds =
            [CrashAt::BeforeConfirm, CrashAt::BeforeConfirm, CrashAt::BeforeConfirm, CrashAt::InHandler];
        dice.shuffle(&mut kinds);
        // Together fewer than there are orders, so that each point is reached.
        let crashes = kinds.map(|at| Crash { at, nth: 20 + dice.below(180) }).to_vec();
        Self { sends, crashes }
    }
}

/// The orders that are sent twice.
pub(crate) fn twice(sends: &[Order]) -> Vec<Order> {
    let mut sorted = sends.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
}

/// `SplitMix64`: written here so that a seed means the same for ever.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_thousand_orders_of_which_two_hundred_come_twice() {
        for seed in [0, 1, 42, u64::MAX] {
            let plan = Plan::of_seed(seed);
            let mut counts = BTreeMap::new();
            plan.sends.iter().for_each(|order| *counts.entry(order).or_insert(0) += 1);
            assert_eq!((plan.sends.len(), counts.len()), (1200, 1000));
            assert_eq!(counts.values().filter(|count| **count == 2).count(), 200);
            assert!(twice(&plan.sends).iter().all(|order| counts[order] == 2));
            assert_eq!(twice(&plan.sends).len(), 200);
            let before = plan.crashes.iter().filter(|crash| crash.at == CrashAt::BeforeConfirm).count();
            assert_eq!((before, plan.crashes.len()), (3, 4));
            assert!(plan.crashes.iter().map(|crash| crash.nth + 1).sum::<usize>() < 1000);
        }
    }

    #[test]
    fn a_seed_is_a_plan() {
        assert_eq!(Plan::of_seed(7), Plan::of_seed(7));
        assert_ne!(Plan::of_seed(7), Plan::of_seed(8));
        assert_eq!(Dice(0).next(), 0xe220_a839_7b1d_cdaf, "the published first number of the seed 0");
    }
}
