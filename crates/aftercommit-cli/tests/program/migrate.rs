//! `migrate` makes the inbox's tables and says what it did.

use crate::run::Home;

#[cfg(feature = "sqlite")]
#[test]
fn in_a_file() {
    let home = Home::new();
    let migrate = || home.run(&["migrate", "--database", "sqlite:inventory.db"]).expect(0).out;
    assert!(
        migrate()
            .starts_with("made inbox_messages, inbox_attempts and inbox_schema_versions in inventory.db")
    );
    assert!(migrate().starts_with("nothing to do"));
    let ended = home.run(&["migrate", "--database", "sqlite:missing/inventory.db"]).expect(3);
    assert!(ended.err.contains("missing/inventory.db"), "{}", ended.all());
    home.run(&["migrate", "--database", "sqlite:"]).expect(2);
    home.run(&["migrate", "--database", "sqlite:inventory.db", "--schema", "shop"]).expect(2);
}

#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
#[test]
fn in_a_schema() {
    let (home, servers) = (Home::new(), crate::servers::Servers::new());
    let database = servers.database();
    let migrate = |schema: &str| home.run(&["migrate", "--database", &database, "--schema", schema]);
    assert!(migrate("shop").expect(0).out.ends_with("in the schema shop, version 1\n"));
    assert!(migrate("shop").expect(0).out.starts_with("nothing to do"));
    assert!(migrate("Shop 2").expect(2).err.contains("schema"));
}
