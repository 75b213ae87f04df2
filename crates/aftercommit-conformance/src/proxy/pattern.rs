use std::fmt;
use std::ops::Range;
use std::sync::Arc;

type Find = dyn Fn(&[u8]) -> Option<Range<usize>> + Send + Sync;

/// What to look for in the bytes of one direction of one connection, however they are split on their way.
#[derive(Clone)]
pub struct Pattern {
    find: Arc<Find>,
    carry: usize,
}

impl Pattern {
    /// These bytes, anywhere.
    ///
    /// An empty needle matches at the first byte that comes.
    #[must_use]
    pub fn bytes(needle: impl Into<Vec<u8>>) -> Self {
        let needle = needle.into();
        let carry = needle.len().saturating_sub(1);
        let find = move |seen: &[u8]| match needle.len() {
            0 => Some(0..0),
            n => seen.windows(n).position(|window| window == needle).map(|start| start..start + n),
        };
        Self { find: Arc::new(find), carry }
    }

    /// What `find` finds in the newest bytes together with up to `carry` bytes from before them. It returns where
    /// in its argument the match begins and ends.
    ///
    /// It runs on the proxy's thread and must not call the proxy.
    #[must_use]
    pub fn predicate(
        carry: usize,
        find: impl Fn(&[u8]) -> Option<Range<usize>> + Send + Sync + 'static,
    ) -> Self {
        Self { find: Arc::new(find), carry }
    }

    /// Where the match begins and ends, counted in the newest bytes: 0 when it reaches back before them.
    pub(super) fn find(&self, earlier: &mut Vec<u8>, newest: &[u8]) -> Option<Range<usize>> {
        let before = earlier.len();
        earlier.extend_from_slice(newest);
        let found = (self.find)(earlier);
        earlier.drain(..earlier.len().saturating_sub(self.carry));
        let within = |position: usize| position.saturating_sub(before).min(newest.len());
        found.map(|range| within(range.start)..within(range.end))
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pattern").field("carry", &self.carry).finish_non_exhaustive()
    }
}
