//! Which of the ids a claim returned.

use aftercommit_core::MessageId;

/// One answer per id, given the ids that the database inserted. An id that occurs twice, which
/// callers must not do, is claimed once: two `true` would be two effects.
pub(crate) fn answers(ids: &[&MessageId], mut inserted: Vec<String>) -> Vec<bool> {
    // Databases do not promise an order for RETURNING.
    inserted.sort_unstable();
    let mut inserted = inserted.into_iter().peekable();
    ids.iter().map(|id| inserted.next_if(|next| next == id.as_str()).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(ids: &[&str], inserted: &[&str]) -> Vec<bool> {
        let ids: Vec<_> = ids.iter().map(|id| MessageId::new(*id).unwrap()).collect();
        answers(&ids.iter().collect::<Vec<_>>(), inserted.iter().map(|&id| id.to_owned()).collect())
    }

    #[test]
    fn each_id_gets_its_own_answer() {
        assert_eq!(ask(&["A", "a", "b", "c"], &["c", "A"]), [true, false, false, true]);
        assert_eq!(ask(&["a"], &[]), [false]);
        assert_eq!(ask(&[], &[]), [false; 0]);
    }

    #[test]
    fn an_id_given_twice_is_claimed_once() {
        assert_eq!(ask(&["a", "a", "b"], &["a", "b"]), [true, false, true]);
    }
}
