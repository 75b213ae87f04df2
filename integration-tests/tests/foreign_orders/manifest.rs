use std::path::Path;

use serde::{Deserialize, Serialize};

/// What was published, as `foreign/manifest.py` tells it.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Manifest {
    seed: String,
    queue: String,
    messages: Vec<Entry>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Entry {
    seq: u64,
    pub(crate) id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id_hex: Option<String>,
    kind: String,
    pub(crate) order_id: Option<String>,
    pub(crate) sha256: String,
    pub(crate) bytes: i64,
    headers: String,
    sent: u32,
    confirmed: u32,
}

impl Manifest {
    pub(crate) fn read(file: &str) -> Self {
        let read: Self = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert!(read.messages.iter().all(|entry| entry.confirmed > 0));
        read
    }

    pub(crate) fn save(&self, file: impl AsRef<Path>) {
        std::fs::write(file, serde_json::to_vec(self).unwrap()).unwrap();
    }

    pub(crate) fn and(mut self, other: &Self) -> Self {
        self.messages.extend(other.messages.iter().cloned());
        self
    }

    /// Messages that have an id and a body.
    pub(crate) fn applicable(&self) -> impl Iterator<Item = &Entry> {
        self.messages.iter().filter(|entry| entry.kind == "order" && entry.id_hex.is_none())
    }
}
