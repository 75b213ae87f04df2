//! The command line.

use std::path::PathBuf;

use aftercommit_lab::Counter;
use clap::{Parser, Subcommand, ValueEnum};

const EXIT_CODES: &str = "\
Exit codes:
  0    all is as it must be
  1    the promise was broken, or an assertion failed (a counter-experiment always fails)
  2    the command line is wrong
  3    it could not be run: a server, a file or a feature of this build is missing
  4    a counter-experiment passed: the experiment proves nothing
  130  interrupted; what it had made was removed";

/// A consumer core for every broker: the business write and the inbox record commit in one transaction, then the broker
/// is told.
#[derive(Debug, Parser)]
#[command(name = "aftercommit", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send 1,000 orders, 200 of them twice, through four crashes of the consumer, and count
    Demo(DemoArgs),
    /// Run a crash experiment against a real product and print an evidence card
    Lab(LabArgs),
    /// Make or update the inbox's tables in a database
    Migrate(MigrateArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  aftercommit completions bash > ~/.local/share/bash-completion/completions/aftercommit"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// A process of a run; started by `demo` and `lab`.
    #[command(hide = true)]
    Role,
}

pub(crate) const DEMO_EXAMPLES: &str = "\
Examples:
  aftercommit demo
  aftercommit demo --seed 7 --json
  aftercommit demo --order confirm-first
  aftercommit demo --broker amqp://guest:guest@127.0.0.1:25472 --database postgres://aftercommit@127.0.0.1:25432/aftercommit";

#[derive(clap::Args)]
#[command(after_help = DEMO_EXAMPLES)]
pub(crate) struct DemoArgs {
    /// The broker; `sqlqueue:` is a file in a temporary folder
    #[arg(
        long,
        value_name = "URL",
        env = "AFTERCOMMIT_BROKER_URL",
        hide_env_values = true,
        default_value = "sqlqueue:"
    )]
    pub(crate) broker: String,
    /// The database; `sqlite:` is a file in a temporary folder
    #[arg(
        long,
        value_name = "URL",
        env = "AFTERCOMMIT_DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite:"
    )]
    pub(crate) database: String,
    /// Decides which orders are sent twice, in which order all are sent, and where the consumer dies
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What comes first; `confirm-first` breaks the promise on purpose
    #[arg(long, value_enum, default_value_t = Order::CommitFirst)]
    pub(crate) order: Order,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl std::fmt::Debug for DemoArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the URLs: they may have passwords in them.
        f.debug_struct("DemoArgs").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// What a consumer does first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// Commit, then tell the broker
    CommitFirst,
    /// Tell the broker, then commit: a crash between the two loses the message
    ConfirmFirst,
}

pub(crate) const LAB_EXAMPLES: &str = "\
Examples:
  aftercommit lab sqlqueue consumer-crash
  aftercommit lab rabbitmq consumer-crash
  aftercommit lab rabbitmq consumer-crash --database postgres://aftercommit@127.0.0.1:25432/aftercommit --json
  aftercommit lab rabbitmq consumer-crash --counter no-inbox --out runs";

#[derive(clap::Args)]
#[command(after_help = LAB_EXAMPLES)]
pub(crate) struct LabArgs {
    /// The broker's product
    #[arg(value_enum)]
    pub(crate) product: Product,
    /// The experiment
    #[arg(value_enum)]
    pub(crate) experiment: Experiment,
    /// The broker. If nothing is said: `sqlqueue:`, a file in a temporary folder, or
    /// `amqp://guest:guest@127.0.0.1:25472`, where `cargo xtask services up` starts RabbitMQ
    #[arg(long, value_name = "URL", env = "AFTERCOMMIT_BROKER_URL", hide_env_values = true)]
    pub(crate) broker: Option<String>,
    /// The database; `sqlite:` is a file in a temporary folder
    #[arg(
        long,
        value_name = "URL",
        env = "AFTERCOMMIT_DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite:"
    )]
    pub(crate) database: String,
    /// Put a consumer in the real one's place with which the experiment must fail
    #[arg(long, value_enum)]
    pub(crate) counter: Option<CounterName>,
    /// Where a copy of the run is stored: `$XDG_DATA_HOME/aftercommit/lab`, or `~/.local/share/aftercommit/lab`, if
    /// nothing is said
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the evidence card as one JSON object, and no log lines
    #[arg(long)]
    pub(crate) json: bool,
}

impl std::fmt::Debug for LabArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the URLs: they may have passwords in them.
        f.debug_struct("LabArgs").field("product", &self.product).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Product {
    Sqlqueue,
    Rabbitmq,
}

impl Product {
    /// Where it is if nobody says.
    pub(crate) const fn url(self) -> &'static str {
        match self {
            Self::Sqlqueue => "sqlqueue:",
            Self::Rabbitmq => "amqp://guest:guest@127.0.0.1:25472",
        }
    }

    pub(crate) const fn schemes(self) -> &'static [&'static str] {
        match self {
            Self::Sqlqueue => &["sqlqueue"],
            Self::Rabbitmq => &["amqp", "amqps"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Experiment {
    /// The consumer dies after its commit and before its confirm
    ConsumerCrash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CounterName {
    /// The broker is told before the commit
    ConfirmFirst,
    /// Effect and inbox row are committed one after the other
    TwoTransactions,
    /// There is no inbox
    NoInbox,
}

impl From<CounterName> for Counter {
    fn from(name: CounterName) -> Self {
        match name {
            CounterName::ConfirmFirst => Self::ConfirmFirst,
            CounterName::TwoTransactions => Self::TwoTransactions,
            CounterName::NoInbox => Self::NoInbox,
        }
    }
}

pub(crate) const MIGRATE_EXAMPLES: &str = "\
Examples:
  aftercommit migrate --database postgres://aftercommit@127.0.0.1:25432/aftercommit --schema inventory
  aftercommit migrate --database sqlite:inventory.db";

#[derive(clap::Args)]
#[command(after_help = MIGRATE_EXAMPLES)]
pub(crate) struct MigrateArgs {
    /// The database: `postgres://user:password@host:port/database` or `sqlite:FILE`
    #[arg(long, value_name = "URL", env = "AFTERCOMMIT_DATABASE_URL", hide_env_values = true)]
    pub(crate) database: String,
    /// The schema of the tables, made if it is missing (PostgreSQL; `public` if nothing is said)
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,
}

impl std::fmt::Debug for MigrateArgs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the URL: it may have a password in it.
        f.debug_struct("MigrateArgs").field("schema", &self.schema).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
