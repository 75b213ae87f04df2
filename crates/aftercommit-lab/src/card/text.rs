use std::fmt;

use super::Card;
use crate::program::Component;

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, value: &str| writeln!(f, "{name:18} {value}");
        row("experiment", self.experiment)?;
        if let Some(counter) = self.counter {
            row("counter-experiment", counter)?;
        }
        row("product", &self.product)?;
        row("database", self.database)?;
        row("program", &told(&self.components.program))?;
        row("broker client", &told(&self.components.broker_client))?;
        row("broker", &told(&self.components.broker))?;
        row("database client", &told(&self.components.database_client))?;
        row("database server", &told(&self.components.database))?;
        row("captured at", &self.captured_at)?;
        row("duration", &format!("{} ms", self.duration_ms))?;
        let codes = self.exit_codes;
        row(
            "exit codes",
            &format!("producer {}, crashed {}, drained {}", codes.producer, codes.crashed, codes.drained),
        )?;
        for assertion in &self.assertions {
            row("figure", &assertion.to_string().replacen("[assert] ", "", 1))?;
        }
        row("verdict", &self.verdict_text())
    }
}

fn told(component: &Component) -> String {
    let digest = component.sha256.as_ref().map(|digest| format!(", sha256 {digest}"));
    format!("{}{}", component.version, digest.unwrap_or_default())
}
