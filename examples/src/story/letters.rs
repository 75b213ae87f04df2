//! Looking at dead letters without taking them.

use std::time::Duration;

use aftercommit::core::dead_letter::header;
use aftercommit::core::{HeaderValue, Source};
use aftercommit::{Broker, Message, Subscription};

use crate::BoxError;

/// How long nothing may come before the dead letters count as read to their end.
const SILENCE: Duration = Duration::from_millis(500);

/// The reasons of a run's dead letters. They stay where they are: what is received and not settled goes back.
pub(super) async fn of_run(
    broker: &dyn Broker,
    subscription: &Subscription,
    run: &str,
) -> Result<Vec<String>, BoxError> {
    let all = subscription.clone().with_prefetch(10_000)?;
    let mut source = broker.dead_letters(&all).await?;
    let reasons = read(&mut *source, run).await;
    source.close().await?;
    reasons
}

async fn read(source: &mut dyn Source, run: &str) -> Result<Vec<String>, BoxError> {
    let mut reasons = Vec::new();
    while let Ok(received) = tokio::time::timeout(SILENCE, source.recv(100)).await {
        let letters = received?.into_vec();
        let ours = letters.iter().map(|letter| &*letter.message).filter(|message| is_of(message, run));
        reasons.extend(ours.map(reason));
    }
    // They were parked side by side.
    reasons.sort_unstable();
    Ok(reasons)
}

/// Runs share the queue; a message of a run names it in its body, if in nothing else.
fn is_of(message: &Message, run: &str) -> bool {
    let body = message.body.as_deref().unwrap_or_default();
    body.windows(run.len()).any(|part| part == run.as_bytes())
}

fn reason(message: &Message) -> String {
    let text = |name| message.headers.get(name).and_then(HeaderValue::as_str).unwrap_or("?");
    format!("{} ({})", text(header::ERROR), text(header::CLASS))
}
