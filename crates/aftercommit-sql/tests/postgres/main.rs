//! What holds on PostgreSQL beside the store suite.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

mod application;
mod conflicts;
mod servers;
mod settings;
#[path = "../stage/mod.rs"]
mod stage;

use std::time::Duration;

use aftercommit_core::{ConsumerName, MessageId};
use aftercommit_inbox::{InboxStore, Session};
use aftercommit_sql::{PgInbox, PgInboxOptions, PgSession};
use sqlx::postgres::PgConnectOptions;

use stage::postgres::{Stage, claimed};

async fn shared() -> Stage {
    Stage::new(&xtask::services::postgres::url().unwrap()).await.unwrap()
}

/// A store over migrated tables.
async fn store(stage: &Stage, options: PgInboxOptions) -> PgInbox {
    store_at(stage, stage.server(), options).await
}

async fn store_at(stage: &Stage, server: PgConnectOptions, options: PgInboxOptions) -> PgInbox {
    let store = stage.store_at(server, 4, options).await.unwrap();
    store.migrate().await.unwrap();
    store
}

fn billing() -> ConsumerName {
    ConsumerName::new("billing").unwrap()
}

fn id(text: &str) -> MessageId {
    MessageId::new(text).unwrap()
}

/// Handles one id as the core does.
async fn handle(session: &mut PgSession, text: &str) -> bool {
    session.begin().await.unwrap();
    let ours = session.claim(&billing(), &[&id(text)]).await.unwrap()[0];
    if ours {
        session.prove(&billing(), &[&id(text)]).await.unwrap();
        session.commit().await.unwrap();
    } else {
        session.rollback().await.unwrap();
    }
    ours
}

/// What must come to pass, in time.
async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(limit, future).await.unwrap_or_else(|_| panic!("waited {limit:?} in vain: {what}"))
}

async fn goes_on(store: &PgInbox, text: &str) {
    let mut session = store.open().await.unwrap();
    assert!(handle(&mut session, text).await, "{text} is a duplicate");
}
