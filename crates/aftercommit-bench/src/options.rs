//! What to measure and how often.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// How the program is called.
pub const USAGE: &str = "\
aftercommit-bench inbox [OPTIONS]      the inbox on RabbitMQ and PostgreSQL, ours ÷ hand-written loops

  --cells A,B         one, batch, set, duplicates, latency, growth, memory (all)
  --rounds N          rounds, product and yardstick taking turns (5)
  --messages N        messages a run of the slowest loop, others get more in proportion (6000)
  --memory-messages N messages that wait in the memory cell (200000)
  --prefetch N        unsettled messages at most (twice connections × batch)
  --json              the report as JSON
  --write FILE        puts the report between the markers of a Markdown file, too
  --no-bar            exit code 0 even when a cell is under its bar

Servers: AFTERCOMMIT_POSTGRES_URL and AFTERCOMMIT_RABBITMQ_URL; `cargo xtask bench inbox` starts and sets them.";

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// One message per transaction.
    One,
    /// Batches with a handler per message.
    Batch,
    /// Batches with a handler per batch.
    Set,
    /// Batches of nothing but duplicates.
    Duplicates,
    /// A slow stream.
    Latency,
    /// More connections.
    Growth,
    /// Many messages waiting.
    Memory,
}

impl Cell {
    const ALL: [(&'static str, Self); 7] = [
        ("one", Self::One),
        ("batch", Self::Batch),
        ("set", Self::Set),
        ("duplicates", Self::Duplicates),
        ("latency", Self::Latency),
        ("growth", Self::Growth),
        ("memory", Self::Memory),
    ];

    fn named(name: &str) -> Result<Self> {
        let known = || Self::ALL.map(|(name, _)| name).join(", ");
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, cell)| *cell)
            .ok_or_else(|| Error::new(format!("no cell {name}; there are: {}", known())))
    }
}

/// The settings of one call.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is measured.
    pub cells: Vec<Cell>,
    /// How often product and yardstick take turns.
    pub rounds: usize,
    /// Messages a run of the slowest loop.
    pub messages: u32,
    /// Messages that wait in the memory cell.
    pub memory_messages: u32,
    /// Unsettled messages at most; `None`: the product's default.
    pub prefetch: Option<u16>,
    /// Whether the report is JSON.
    pub json: bool,
    /// A Markdown file that takes the report.
    pub write: Option<PathBuf>,
    /// Whether a cell under its bar is a failure.
    pub bar: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cells: Cell::ALL.map(|(_, cell)| cell).to_vec(),
            rounds: 5,
            messages: 6_000,
            memory_messages: 200_000,
            prefetch: None,
            json: false,
            write: None,
            bar: true,
        }
    }
}

impl Options {
    /// Understands the arguments after the program's name. `None`: only [`USAGE`] is wanted.
    ///
    /// # Errors
    /// Naming the argument that is not understood.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let mut arguments = arguments.into_iter();
        match arguments.next().as_deref() {
            Some("inbox") => {}
            None | Some("help" | "-h" | "--help") => return Ok(None),
            Some(other) => return Err(Error::new(format!("no benchmark {other}; there is: inbox"))),
        }
        let mut options = Self::default();
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| Error::new(format!("{name} needs a value")));
            match name.as_str() {
                "--cells" => options.cells = value()?.split(',').map(Cell::named).collect::<Result<_>>()?,
                "--rounds" => options.rounds = number(&name, &value()?, 1)?,
                "--messages" => options.messages = number(&name, &value()?, 100)?,
                "--memory-messages" => options.memory_messages = number(&name, &value()?, 1_000)?,
                "--prefetch" => options.prefetch = Some(number(&name, &value()?, 1)?),
                "--json" => options.json = true,
                "--write" => options.write = Some(value()?.into()),
                "--no-bar" => options.bar = false,
                "-h" | "--help" => return Ok(None),
                other => return Err(Error::new(format!("unknown argument {other}"))),
            }
        }
        Ok(Some(options))
    }
}

fn number<N: TryFrom<u64>>(name: &str, text: &str, least: u64) -> Result<N> {
    let number = text.parse::<u64>().ok().filter(|number| *number >= least);
    let fits = number.and_then(|number| N::try_from(number).ok());
    fits.ok_or_else(|| Error::new(format!("{name}: {text} is not a number from {least} up that fits")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Options>> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_understood() {
        let options = parsed("inbox --cells one,memory --rounds 7 --no-bar").unwrap().unwrap();
        assert_eq!(options.cells, [Cell::One, Cell::Memory]);
        assert_eq!((options.rounds, options.bar), (7, false));
        assert!(parsed("").unwrap().is_none());
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, named) in [
            ("outbox", "outbox"),
            ("inbox --cells two", "two"),
            ("inbox --rounds 0", "--rounds"),
            ("inbox --prefetch 65536", "65536"),
            ("inbox --fast", "--fast"),
            ("inbox --rounds", "--rounds"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
