//! The business: one reservation per order, in a table without a unique key.

use std::collections::HashMap;
use std::time::Duration;

use aftercommit_core::Message;
use aftercommit_inbox::{Handled, Handler, typed};
use aftercommit_integration_tests::database::Database;
use aftercommit_integration_tests::until::until;
use aftercommit_sql::PgInbox;
use serde::Deserialize;
use sqlx::postgres::PgConnection;

use crate::manifest::Manifest;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Order {
    event_id: String,
    order_id: String,
}

const RESERVATIONS: &str = "CREATE TABLE reservations \
    (message_id text COLLATE \"C\", event_id text, order_id text, sha256 text, bytes bigint)";

pub(crate) async fn open(db: &Database) {
    db.run(RESERVATIONS).await;
}

pub(crate) fn reserves() -> impl Handler<PgInbox> {
    typed(|db: &mut PgConnection, order: &Order, message: &Message| {
        Box::pin(async move {
            sqlx::query(
                "INSERT INTO reservations SELECT $1, $2, $3, encode(sha256($4), 'hex'), octet_length($4)",
            )
            .bind(std::str::from_utf8(message.id.as_deref().unwrap_or_default())?)
            .bind(&order.event_id)
            .bind(&order.order_id)
            .bind(message.body.as_deref())
            .execute(db)
            .await?;
            Ok(Handled::Applied)
        })
    })
}

type Row = (String, String, String, String, i64);

/// Seen over a connection from outside: each order of the manifest once, with the bytes that were published.
pub(crate) async fn has_each_once(db: &Database, wanted: &Manifest) {
    let wanted: HashMap<&str, _> = wanted.applicable().map(|e| (e.id.as_deref().unwrap(), e)).collect();
    let mut conn = db.connect().await;
    until("all orders are applied", Duration::from_secs(60), || async {
        let count = db.number("SELECT count(*) FROM reservations").await;
        let all = wanted.len() as i64;
        assert!(count <= all, "{count} reservations for {all} orders");
        if count == all { Ok(()) } else { Err(format!("{count} of {all}")) }
    })
    .await;
    let rows: Vec<Row> = sqlx::query_as("SELECT * FROM reservations").fetch_all(&mut conn).await.unwrap();
    let mut seen = std::collections::HashSet::new();
    for (id, event_id, order_id, sha256, bytes) in &rows {
        let order = wanted.get(id.as_str()).unwrap_or_else(|| panic!("nobody sent {id:?}"));
        assert!(seen.insert(id), "{id:?} was applied twice");
        assert_eq!((event_id, Some(order_id)), (id, order.order_id.as_ref()));
        assert_eq!((sha256, *bytes), (&order.sha256, order.bytes), "{id:?}: another body");
    }
    assert_eq!(rows.len(), wanted.len());
}
