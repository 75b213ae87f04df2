use crate::BoxError;

const USAGE: &str = "\
  --broker URL     memory: (the default), sqlqueue:FILE or amqp://user:password@host:port/vhost
  --database URL   sqlite:FILE (the default is a temporary file) or postgres://user:password@host:port/database
  --orders N       how many orders to publish (1000). 0: publish none, consume until Ctrl-C";

/// The command line of every example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    /// Where the messages are.
    pub broker: String,
    /// Where the reservations go; a temporary SQLite file if nobody says.
    pub database: Option<String>,
    /// How many orders to publish.
    pub orders: usize,
}

impl Args {
    /// Reads the command line.
    ///
    /// # Errors
    /// What is wrong with it, and how it is used.
    pub fn from_env() -> Result<Self, BoxError> {
        Self::parse(std::env::args().skip(1)).map_err(|wrong| format!("{wrong}\n{USAGE}").into())
    }

    fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut args = Self { broker: "memory:".into(), database: None, orders: 1000 };
        let mut words = words.into_iter();
        while let Some(name) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{name} needs a value"));
            match name.as_str() {
                "--broker" => args.broker = value()?,
                "--database" => args.database = Some(value()?),
                "--orders" => {
                    args.orders = value()?.parse().map_err(|_| "--orders needs a number".to_owned())?;
                }
                "--help" | "-h" => return Err("usage:".into()),
                _ => return Err(format!("unknown: {name}")),
            }
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Args, String> {
        Args::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn defaults_need_no_server() {
        assert_eq!(parse(""), Ok(Args { broker: "memory:".into(), database: None, orders: 1000 }));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(parse("--orders").unwrap_err(), "--orders needs a value");
        assert_eq!(parse("--order 3").unwrap_err(), "unknown: --order");
        assert_eq!(parse("--orders 3 --database sqlite:x").unwrap().database.as_deref(), Some("sqlite:x"));
    }
}
