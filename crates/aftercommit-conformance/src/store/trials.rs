//! The trials, by topic.

mod claim;
mod commit;
mod counter;
mod fault;
mod proof;
mod session;
mod setup;
mod transaction;

use std::sync::Arc;

use aftercommit_core::BoxError;
use aftercommit_inbox::InboxStore;
use futures_util::future::BoxFuture;

use super::fixture::Ability;
use super::stage::StoreStage;

/// One trial before it is bound to a fixture.
pub(crate) struct Case<S: InboxStore> {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Ability],
    pub(crate) run: fn(Arc<dyn StoreStage<S>>) -> BoxFuture<'static, Result<(), BoxError>>,
}

/// Lists a topic's trials: `name` or `name [Ability, …]`.
macro_rules! cases {
    ($topic:literal: $($name:ident $([$($need:ident),+])?),+ $(,)?) => {
        pub(super) fn cases<S: aftercommit_inbox::InboxStore>() -> Vec<super::Case<S>> {
            vec![$(super::Case {
                name: concat!($topic, "::", stringify!($name)),
                needs: &[$($(crate::store::Ability::$need),+)?],
                run: |stage| Box::pin($name(stage)),
            }),+]
        }
    };
}
use cases;

pub(super) fn all<S: InboxStore>() -> impl Iterator<Item = Case<S>> {
    [
        claim::cases(),
        transaction::cases(),
        proof::cases(),
        commit::cases(),
        counter::cases(),
        session::cases(),
        fault::cases(),
        setup::cases(),
    ]
    .into_iter()
    .flatten()
}
