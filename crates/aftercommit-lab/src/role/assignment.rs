use serde::{Deserialize, Serialize};

use crate::order::Order;
use crate::plan::Crash;
use crate::site::Site;

/// What one process is told. It travels over the process's input, since command lines and environments can be read by
/// others.
#[derive(Serialize, Deserialize)]
pub(crate) struct Assignment {
    pub(crate) site: Site,
    pub(crate) part: Part,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// Publishes these, so many at once.
    Producer { sends: Vec<Order>, at_once: usize },
    /// Consumes until it is told to stop, or dies.
    Consumer(Consume),
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Consume {
    pub(crate) method: Method,
    pub(crate) prefetch: u16,
    pub(crate) crash: Option<Crash>,
    /// Orders at which a consumer written by hand does not die, because they are sent twice: the other copy would mend
    /// what it broke.
    pub(crate) spared: Vec<Order>,
}

/// How a consumer works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Method {
    /// The real one.
    Inbox,
    /// By hand: the broker is told before the commit.
    ConfirmFirst,
    /// By hand: effect and inbox row have a transaction each.
    TwoTransactions,
    /// By hand: nothing is noted.
    NoInbox,
}
