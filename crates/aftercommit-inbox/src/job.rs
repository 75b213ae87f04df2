//! A batch, sorted into what can be claimed and what cannot.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use aftercommit_core::identity::Resolved;
use aftercommit_core::{Delivery, Failure, FailureClass, IdPolicy, Message, MessageId};

/// All deliveries of one id in a batch. The first is handled, the others share its fate.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: MessageId,
    pub(crate) message: Arc<Message>,
    pub(crate) deliveries: Vec<Delivery>,
}

/// What is known about a job after its transaction.
#[derive(Debug)]
pub(crate) enum Verdict {
    Applied,
    Rejected,
    Duplicate,
    Failed(Failed),
    /// The database refused to serialize it again and again: given back without an attempt.
    Busy,
    /// Not decided, because the consumer stops or the delivery is no longer ours: given back without
    /// an attempt.
    Stopped,
}

impl Job {
    /// Whether none of its deliveries is ours any more: the broker hands it out anew.
    pub(crate) fn is_lost(&self) -> bool {
        self.deliveries.iter().all(Delivery::is_lost)
    }
}

/// A failure that counts.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) class: FailureClass,
    pub(crate) error: String,
}

impl Failed {
    pub(crate) fn transient(error: impl Into<String>) -> Self {
        Self { class: FailureClass::Transient, error: error.into() }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self { class: failure.class(), error: failure.chain() }
    }
}

/// A batch after looking at each message, before anything is claimed.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    /// Ready to be claimed; ids are distinct.
    pub(crate) jobs: Vec<Job>,
    /// They have an id, but their handler cannot read them.
    pub(crate) unreadable: Vec<(Job, Failed)>,
    /// They have no usable id.
    pub(crate) nameless: Vec<(Delivery, Failed)>,
    /// No longer ours: dropped, they come again.
    pub(crate) lost: usize,
    /// Handled under a made-up id.
    pub(crate) made_up: usize,
}

/// Sorts a batch. The same id twice becomes one job: the first delivery counts.
pub(crate) fn sort(
    deliveries: Vec<Delivery>,
    policy: &IdPolicy,
    decode: impl Fn(&Message) -> Result<(), Failure>,
) -> Sorted {
    let mut sorted = Sorted::default();
    let mut known: HashMap<MessageId, Place> = HashMap::with_capacity(deliveries.len());
    for delivery in deliveries {
        if delivery.is_lost() {
            sorted.lost += 1;
            continue;
        }
        let id = match policy.resolve(&delivery.message) {
            Ok(Resolved::Own(id)) => id,
            Ok(Resolved::MakeUp) => {
                sorted.made_up += 1;
                delivery.message.stand_in_id(made_up_id).clone()
            }
            Err(error) => {
                let failed = Failed { class: FailureClass::Poison, error: error.to_string() };
                sorted.nameless.push((delivery, failed));
                continue;
            }
        };
        match known.get(&id) {
            Some(&Place::Ready(index)) => sorted.jobs[index].deliveries.push(delivery),
            Some(&Place::Unreadable(index)) => sorted.unreadable[index].0.deliveries.push(delivery),
            None => {
                let place = sorted.add(id.clone(), delivery, &decode);
                known.insert(id, place);
            }
        }
    }
    sorted
}

/// Where the job of an id is.
#[derive(Clone, Copy)]
enum Place {
    Ready(usize),
    Unreadable(usize),
}

impl Sorted {
    fn add(
        &mut self,
        id: MessageId,
        delivery: Delivery,
        decode: impl Fn(&Message) -> Result<(), Failure>,
    ) -> Place {
        let message = Arc::clone(&delivery.message);
        let job = Job { id, message, deliveries: vec![delivery] };
        match decode_caught(&job.message, decode) {
            Ok(()) => {
                self.jobs.push(job);
                Place::Ready(self.jobs.len() - 1)
            }
            Err(failed) => {
                self.unreadable.push((job, failed));
                Place::Unreadable(self.unreadable.len() - 1)
            }
        }
    }
}

fn decode_caught(message: &Message, decode: impl Fn(&Message) -> Result<(), Failure>) -> Result<(), Failed> {
    match catch_unwind(AssertUnwindSafe(|| decode(message))) {
        Ok(decoded) => decoded.map_err(Failed::from),
        Err(panic) => Err(Failed {
            class: FailureClass::Poison,
            error: format!("decoding panicked: {}", panic_text(&*panic)),
        }),
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

#[expect(clippy::expect_used, reason = "a prefix and a UUID are 44 bytes of ASCII")]
fn made_up_id() -> MessageId {
    MessageId::new(format!("made-up-{}", uuid::Uuid::new_v4())).expect("a valid id")
}
