//! Growing delays with jitter.

use std::time::Duration;

use rand::RngExt as _;

/// `first` doubled with each step, at most `most`, of which a random half is taken off, so that
/// lanes and instances that failed together do not try together.
pub(crate) fn delay(step: u32, first: Duration, most: Duration) -> Duration {
    let full = first.saturating_mul(1_u32.checked_shl(step.min(20)).unwrap_or(u32::MAX)).min(most);
    full.mul_f64(rand::rng().random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_the_limit_and_never_vanish() {
        let (first, most) = (Duration::from_millis(10), Duration::from_secs(1));
        for step in [0, 1, 5, 40, u32::MAX] {
            let delay = delay(step, first, most);
            assert!(delay >= first / 2 && delay <= most, "step {step}: {delay:?}");
        }
    }
}
