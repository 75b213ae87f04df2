//! What a process says: a line per event.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use aftercommit::Message;
use aftercommit::core::Redelivered;
use time::OffsetDateTime;

use crate::LogLine;
use crate::database::Ledger;
use crate::order::{EVENT_TYPE, id_of};
use crate::site::{CONSUMER, PRODUCER, Site};

/// Writes the lines of one process. Clones write for the same one.
#[derive(Clone)]
pub(crate) struct Journal(Arc<Shared>);

struct Shared {
    site: Site,
    ledger: Option<Arc<dyn Ledger>>,
    /// What was received and is not settled.
    open: Mutex<HashMap<String, Receipt>>,
    /// What the handler has done and nobody confirmed.
    handled: Mutex<HashSet<String>>,
    /// What the process was at when it died.
    current: Mutex<Option<Receipt>>,
    /// Held while the broker is told, and while what it sends then is written down: the line of a confirm never comes
    /// after the line of what the confirm made room for.
    turn: tokio::sync::Mutex<()>,
}

/// One delivery, as its lines show it.
#[derive(Clone)]
pub(crate) struct Receipt {
    pub(crate) message: Arc<Message>,
    redelivered: &'static str,
    attempt: String,
    since: Instant,
}

impl Journal {
    pub(crate) fn new(site: &Site, ledger: Option<Arc<dyn Ledger>>) -> Self {
        Self(Arc::new(Shared {
            site: site.clone(),
            ledger,
            open: Mutex::default(),
            handled: Mutex::default(),
            current: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }))
    }

    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.turn.lock().await
    }

    /// The producer has the broker's positive answer.
    pub(crate) fn confirmed(&self, message: &Message, since: Instant) {
        let line = of_message(self.line("producer", PRODUCER, since, "confirmed"), message);
        write(&line.with("level", "info"));
    }

    /// Reads what the database knows of a delivery.
    pub(crate) async fn receipt(&self, message: &Arc<Message>, redelivered: Redelivered) -> Receipt {
        let attempt = match &self.0.ledger {
            Some(ledger) => ledger.attempt(&id_of(message)).await.ok(),
            None => None,
        };
        let redelivered = match redelivered {
            Redelivered::No => "false",
            Redelivered::Yes => "true",
            Redelivered::Unknown => "unknown",
        };
        let attempt = attempt.map(|attempt| attempt.to_string()).unwrap_or_default();
        Receipt { message: Arc::clone(message), redelivered, attempt, since: Instant::now() }
    }

    pub(crate) fn received(&self, receipt: &Receipt) {
        lock(&self.0.open).insert(id_of(&receipt.message), receipt.clone());
        self.say(receipt, "info", "received");
    }

    /// The handler is called.
    pub(crate) fn handling(&self, message: &Message) {
        let receipt = lock(&self.0.open).get(&id_of(message)).cloned();
        *lock(&self.0.current) = receipt;
    }

    /// The handler has done its work, which is not committed yet.
    pub(crate) fn handled(&self, message: &Message) {
        lock(&self.0.handled).insert(id_of(message));
    }

    /// Somebody wants to confirm: says why, and whether the handler ran for it in this process.
    pub(crate) fn settling(&self, receipt: &Receipt) -> bool {
        *lock(&self.0.current) = Some(receipt.clone());
        let fresh = lock(&self.0.handled).remove(&id_of(&receipt.message));
        if fresh {
            self.say(receipt, "info", "business_committed");
        } else {
            self.say(receipt, "warn", "duplicate_skipped");
        }
        fresh
    }

    pub(crate) fn done(&self, receipt: &Receipt) {
        self.say(receipt, "info", "done");
    }

    /// The last line of a process that dies.
    pub(crate) fn crashing(&self) {
        if let Some(receipt) = lock(&self.0.current).take() {
            self.say(&receipt, "error", "crash_injected");
        }
    }

    fn say(&self, receipt: &Receipt, level: &str, status: &str) {
        let line = of_message(self.line("consumer", CONSUMER, receipt.since, status), &receipt.message);
        let line = line.with("level", level).with("consumer", CONSUMER).with("attempt", &receipt.attempt);
        write(&line.with("redelivered", receipt.redelivered));
    }

    fn line(&self, who: &str, service: &str, since: Instant, status: &str) -> LogLine {
        of_site(LogLine::of(who), &self.0.site)
            .with("service", service)
            .with("durationMs", since.elapsed().as_millis().to_string())
            .with("status", status)
    }
}

/// The line by which the lab says that an effect is in the database.
pub(crate) fn snapshot(site: &Site, message_id: &str, order: &str, since: Instant) -> LogLine {
    of_site(LogLine::of("lab"), site)
        .with("level", "info")
        .with("service", "aftercommit-lab")
        .with("messageId", message_id)
        .with("aggregateId", order)
        .with("consumer", CONSUMER)
        .with("durationMs", since.elapsed().as_millis().to_string())
        .with("status", "snapshot")
}

fn of_site(line: LogLine, site: &Site) -> LogLine {
    line.with("timestamp", now())
        .with("product", &site.product)
        .with("lab", &site.lab)
        .with("destination", &site.destination)
        .with("routingKey", EVENT_TYPE)
}

fn of_message(line: LogLine, message: &Message) -> LogLine {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    line.with("messageId", id_of(message))
        .with("eventType", text(&message.event_type))
        .with("schemaVersion", text(&message.schema_version))
        .with("aggregateId", text(&message.aggregate_id))
        .with("traceId", text(&message.trace_id))
        .with("correlationId", text(&message.correlation_id))
}

/// The time in UTC as RFC 3339, to the millisecond.
pub(crate) fn now() -> String {
    let now = OffsetDateTime::now_utc();
    let (year, month, day) = now.to_calendar_date();
    let (hour, minute, second, milli) = now.to_hms_milli();
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Who reads it may be gone, which the process notices elsewhere.
fn write(line: &LogLine) {
    // At once: when the process ends itself the standard output has no buffer any more, and a thread that still writes
    // would leave a part of its line behind.
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
