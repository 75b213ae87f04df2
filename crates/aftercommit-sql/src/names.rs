//! Names of our tables. They become part of SQL text, so they are checked and quoted.

use aftercommit_core::ConfigError;

/// The three tables, qualified and quoted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    pub(crate) messages: String,
    pub(crate) attempts: String,
    pub(crate) versions: String,
}

impl Tables {
    pub(crate) fn new(schema: Option<&Name>, prefix: &Name) -> Self {
        let table = |name: &str| {
            let schema = schema.map(|schema| format!("{}.", quoted(schema.as_str()))).unwrap_or_default();
            format!("{schema}{}", quoted(&format!("{}{name}", prefix.as_str())))
        };
        Self {
            messages: table("inbox_messages"),
            attempts: table("inbox_attempts"),
            versions: table("inbox_schema_versions"),
        }
    }

    /// SQL of ours with the tables' names in place of `{messages}`, `{attempts}` and `{versions}`.
    pub(crate) fn fill(&self, sql: &str) -> String {
        sql.replace("{messages}", &self.messages)
            .replace("{attempts}", &self.attempts)
            .replace("{versions}", &self.versions)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// A name that is safe inside double quotes and that PostgreSQL does not cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// PostgreSQL cuts identifiers at 63 bytes, silently: two prefixes could become one.
    const MOST: usize = 63;
    const LONGEST_SUFFIX: usize = "inbox_schema_versions".len();

    #[cfg(feature = "postgres")]
    pub(crate) fn schema(name: impl Into<String>) -> Result<Self, ConfigError> {
        Self::checked("the schema's name", name.into(), Self::MOST)
    }

    /// May be empty.
    pub(crate) fn prefix(name: impl Into<String>) -> Result<Self, ConfigError> {
        let name = name.into();
        if name.is_empty() {
            return Ok(Self(name));
        }
        Self::checked("the table prefix", name, Self::MOST - Self::LONGEST_SUFFIX)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    fn checked(what: &'static str, name: String, most: usize) -> Result<Self, ConfigError> {
        if name.is_empty() {
            return Err(ConfigError::Empty { what });
        }
        if name.len() > most {
            return Err(ConfigError::TooLarge { what, found: name.len(), most });
        }
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            let reason = "it may have a-z, A-Z, 0-9 and _, and must not start with a digit".to_owned();
            return Err(ConfigError::Invalid { what, reason });
        }
        Ok(Self(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_qualified_and_quoted() {
        let tables = Tables::new(Some(&Name::schema("shop").unwrap()), &Name::prefix("a_").unwrap());
        assert_eq!(
            tables.fill("{messages} {attempts}"),
            r#""shop"."a_inbox_messages" "shop"."a_inbox_attempts""#
        );
        let tables = Tables::new(None, &Name::default());
        assert_eq!(tables.versions, r#""inbox_schema_versions""#);
    }

    #[test]
    fn whatever_could_end_the_quotes_or_be_cut_is_refused() {
        for bad in ["", "a\"b", "a b", "1a", "é", "a;b", "a.b", &"a".repeat(64)] {
            Name::schema(bad).unwrap_err();
        }
        Name::prefix("a".repeat(43)).unwrap_err();
        assert_eq!(Name::prefix("a".repeat(42)).unwrap().as_str().len() + Name::LONGEST_SUFFIX, 63);
        Name::prefix("").unwrap();
    }
}
