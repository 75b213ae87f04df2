//! The trials, by topic.

mod connection;
mod dead_letter;
mod delivery;
mod message;
mod publish;
mod settle;
mod topology;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use aftercommit_core::BoxError;

use super::fixture::Ability;
use super::stage::Stage;

/// One trial before it is bound to a fixture.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Ability],
    pub(crate) run: fn(Arc<dyn Stage>) -> BoxFuture<'static, Result<(), BoxError>>,
}

/// Lists a topic's trials: `name` or `name [Ability, …]`.
macro_rules! cases {
    ($topic:literal: $($name:ident $([$($need:ident),+])?),+ $(,)?) => {
        pub(super) const CASES: &[super::Case] = &[$(super::Case {
            name: concat!($topic, "::", stringify!($name)),
            needs: &[$($(crate::broker::Ability::$need),+)?],
            run: |stage| Box::pin($name(stage)),
        }),+];
    };
}
use cases;

pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    [
        delivery::CASES,
        settle::CASES,
        connection::CASES,
        publish::CASES,
        message::CASES,
        topology::CASES,
        dead_letter::CASES,
    ]
    .into_iter()
    .flatten()
}
