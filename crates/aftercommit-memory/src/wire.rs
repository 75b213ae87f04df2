//! What of a message travels.

use bytes::Bytes;

use aftercommit_core::{HeaderValue, Headers, Message, Origin, Outgoing};

use crate::broken::Broken;
use crate::event::Position;
use crate::state::State;

impl State {
    /// The message as a queue keeps it: all but the origin and the commands, which are not sent.
    pub(crate) fn as_kept(&self, sent: &Outgoing, queue: &str, position: Position) -> Message {
        let mut message = sent.message.clone();
        let destination = if self.is(Broken::OriginIsQueue) { queue } else { &sent.destination.name };
        message.origin = Origin {
            destination: destination.to_owned(),
            routing_key: Some(sent.destination.routing_key.clone()),
            position: Some(position.to_string()),
        };
        let commands = std::mem::take(&mut message.commands);
        if self.is(Broken::CommandsSent) {
            message.commands = commands;
        }
        for broken in &self.broken {
            mangle(*broken, &mut message);
        }
        message
    }
}

fn mangle(broken: Broken, message: &mut Message) {
    match broken {
        Broken::EmptyBecomesAbsent => message.body = message.body.take().filter(|body| !body.is_empty()),
        Broken::AbsentBecomesEmpty => message.body = Some(message.body.take().unwrap_or_default()),
        Broken::BodyIsText => message.body = message.body.take().map(|body| as_text(&body)),
        Broken::BodyIsCut => {
            message.body = message.body.take().map(|body| body.slice(..body.len().min(65536)))
        }
        Broken::HeaderWidthLost => widen(&mut message.headers),
        Broken::NestedHeaderDropped => {
            message.headers.retain(|_, value| !matches!(value, HeaderValue::List(_) | HeaderValue::Table(_)))
        }
        Broken::RepeatedHeaderLost => {
            let mut headers = Headers::new();
            for (name, value) in std::mem::take(&mut message.headers) {
                headers.set(name, value);
            }
            message.headers = headers;
        }
        Broken::KeyIsText => message.key = message.key.take().map(|key| as_text(&key)),
        Broken::OccurredAtLost => message.occurred_at = None,
        Broken::IdTrimmed => {
            message.id = message.id.take().map(|id| Bytes::copy_from_slice(id.trim_ascii()));
        }
        Broken::IdInvented => message.id = message.id.take().or(Some(Bytes::from_static(b"invented"))),
        Broken::NativeLost => message.native = Headers::new(),
        _ => {}
    }
}

fn as_text(bytes: &Bytes) -> Bytes {
    Bytes::from(String::from_utf8_lossy(bytes).into_owned())
}

fn widen(headers: &mut Headers) {
    let wide = std::mem::take(headers).into_iter().map(|(name, value)| match value.as_i64() {
        Some(number) => (name, HeaderValue::I64(number)),
        None => (name, value),
    });
    *headers = wide.collect();
}
