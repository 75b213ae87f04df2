//! The trials, by topic.

mod failure;
mod ids;
mod once;
mod outage;
mod parallel;
mod shutdown;

use futures_util::future::BoxFuture;

use aftercommit_core::{BoxError, HeaderValue, Message};
use aftercommit_inbox::InboxStore;

use super::scene::{Scene, TOPIC, id, message};
use crate::broker::Ability;

/// One trial before it is bound to a product and a database.
pub(crate) struct Case<S: InboxStore> {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Ability],
    /// Whether it needs transactions that run side by side.
    pub(crate) parallel: bool,
    pub(crate) run: fn(Scene<S>) -> BoxFuture<'static, Result<(), BoxError>>,
}

const fn given(words: &[&str]) -> bool {
    !words.is_empty()
}

/// Lists a topic's trials: `name` or `name [Ability, …]`; `& parallel` after those that need
/// transactions that run side by side.
macro_rules! cases {
    ($topic:literal: $($name:ident $([$($need:ident),+])? $(& $parallel:ident)?),+ $(,)?) => {
        pub(super) fn cases<S: aftercommit_inbox::InboxStore>() -> Vec<super::Case<S>> {
            vec![$(super::Case {
                name: concat!($topic, "::", stringify!($name)),
                needs: &[$($(crate::broker::Ability::$need),+)?],
                parallel: super::given(&[$(stringify!($parallel))?]),
                run: |scene| Box::pin($name(scene)),
            }),+]
        }
    };
}
use cases;

pub(super) fn all<S: InboxStore>() -> Vec<Case<S>> {
    [once::cases(), ids::cases(), failure::cases(), parallel::cases(), outage::cases(), shutdown::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// A header as text; empty where it is not there.
fn text(message: &Message, name: &str) -> String {
    message.headers.get(name).and_then(HeaderValue::as_str).unwrap_or_default().to_owned()
}
