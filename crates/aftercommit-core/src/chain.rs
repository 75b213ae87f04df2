//! Errors in one line.

use std::error::Error;

/// An error and every source below it in one line, without a part that the text ends with already: an error that only
/// wraps another one often has its text. May be long.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    with_sources(error.to_string(), error.source())
}

/// The same for a text of one's own above an error.
pub(crate) fn with_sources(mut text: String, mut next: Option<&(dyn Error + 'static)>) -> String {
    while let Some(error) = next {
        let part = error.to_string();
        if !text.ends_with(&part) {
            text.push_str(": ");
            text.push_str(&part);
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Level {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    fn levels(texts: &[&'static str]) -> Level {
        let source = (texts.len() > 1).then(|| Box::new(levels(&texts[1..])));
        Level { text: texts[0], source }
    }

    #[test]
    fn every_level_is_named() {
        assert_eq!(
            chain(&levels(&["publishing", "connection lost", "reset"])),
            "publishing: connection lost: reset"
        );
        assert_eq!(chain(&levels(&["alone"])), "alone");
    }

    #[test]
    fn a_wrapper_that_repeats_its_source_is_named_once() {
        assert_eq!(chain(&levels(&["no route: reset", "reset", "reset"])), "no route: reset");
    }
}
