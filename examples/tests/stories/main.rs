//! The examples as a reader runs them: as programs, on each product with each database. Every program checks its own
//! figures and says so by its exit code; the figures are read here again.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod program;
#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
mod servers;

use program::{figure, tell};

#[test]
fn memory_with_sqlite_needs_no_server() {
    let told = tell("inventory", &["--orders", "200"]);
    assert_eq!((figure(&told, "published"), figure(&told, "duplicates")), (212, 10), "{told}");
    assert_eq!((figure(&told, "applied"), figure(&told, "rejected")), (190, 10), "{told}");
    assert_eq!((figure(&told, "dead letters"), figure(&told, "database rows")), (2, 200), "{told}");
    assert!(told.contains("dead letter: no message id (poison)"), "{told}");
    tell("batch", &["--orders", "200"]);
    let told = tell("router", &["--orders", "200"]);
    assert!(told.contains("150 reserved, 0 rejected, 50 cancelled"), "{told}");
}

#[cfg(feature = "sqlqueue")]
#[test]
fn the_same_on_a_queue_file_with_sqlite() {
    let file = program::queue_file();
    for example in ["inventory", "router", "batch"] {
        tell(example, &["--orders", "200", "--broker", &file]);
    }
}

#[test]
fn every_figure_of_the_inventory_is_what_it_must_be() {
    let told = "published      1052\n\
        applied         950\n\
        rejected         50  the business said no: committed and confirmed like a yes\n\
        duplicates       50  the inbox knew them\n\
        dead letters      2\n\
        database rows  1000  950 reserved, 50 rejected, 0 cancelled\n\
        \x20 dead letter: no message id (poison)\n\
        \x20 dead letter: the body does not decode: key must be a string at line 1 column 3 (poison)\n\
        every figure is what it must be\n";
    assert_eq!(tell("inventory", &[]), told);
}

#[test]
fn what_a_build_lacks_is_named() {
    let (ok, _, log) = program::run("inventory", &["--broker", "amqq://localhost"]);
    assert!(!ok && log.contains("no product has URLs with the scheme \"amqq\""), "{log}");
    let (ok, _, log) = program::run("inventory", &["--database", "oracle:x"]);
    assert!(!ok && log.contains("no such database"), "{log}");
}

#[cfg(not(all(feature = "rabbitmq", feature = "postgres")))]
#[test]
fn the_same_on_servers() {
    panic!("this build has no RabbitMQ and PostgreSQL: run `cargo xtask test -p aftercommit-examples`");
}

#[cfg(all(feature = "rabbitmq", feature = "postgres"))]
mod on_servers {
    use super::program::{Background, run, tell};
    use super::servers::{Database, VirtualHost, until};

    #[test]
    fn the_same_on_rabbitmq_with_postgres() {
        // One after the other on the same servers: what one leaves behind must not disturb the next.
        let (host, database) = (VirtualHost::new(), Database::new());
        for example in ["inventory", "router", "batch"] {
            tell(example, &["--orders", "200", "--broker", &host.url(), "--database", &database.url()]);
        }
    }

    #[test]
    fn the_same_on_memory_with_postgres() {
        let database = Database::new();
        tell("inventory", &["--orders", "200", "--database", &database.url()]);
    }

    #[test]
    fn the_same_on_rabbitmq_with_sqlite() {
        let host = VirtualHost::new();
        tell("inventory", &["--orders", "200", "--broker", &host.url()]);
    }

    #[test]
    fn what_one_program_publishes_another_applies() {
        let (host, database) = (VirtualHost::new(), Database::new());
        let orders = ["--orders", "30", "--broker", &host.url()];
        let (ok, told, log) = run("publish_orders", &orders);
        assert!(!ok && told.is_empty() && log.contains("orders.events/order.created"), "{told}{log}");
        let arguments = ["--orders", "0", "--broker", &host.url(), "--database", &database.url()];
        let inventory = Background::start("inventory", &arguments, &[]);
        until("the consumer's binding", || host.is_bound("inventory.orders"));
        tell("publish_orders", &orders);
        until("30 reservations", || database.count("reservations") == Some(30));
        inventory.end("INT");
    }

    /// The consumer of the README, as it stands there.
    #[test]
    fn the_readme_consumer_writes_a_parcel_for_each_order() {
        let (host, database) = (VirtualHost::new(), Database::new());
        let environment = [("BROKER_URL", host.url()), ("DATABASE_URL", database.url())];
        let consumer = Background::start("consumer", &[], &environment);
        until("the consumer's binding", || host.is_bound("shipping"));
        tell("publish_orders", &["--orders", "20", "--broker", &host.url()]);
        until("20 parcels", || database.count("parcels") == Some(20));
        consumer.end("TERM");
        assert_eq!(database.count("inbox_messages"), Some(20));
        assert_eq!(host.left_in("shipping"), 0, "everything is confirmed");
    }
}
