//! The payload of a content header frame of class basic.

use super::cursor::{Cursor, mend_text};
use super::table::mend_headers;
use crate::message::own;

const BASIC: u16 = 60;

/// What a content header said that somebody needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Content {
    /// `message_id`, if it was not text.
    pub(super) raw_id: Option<Vec<u8>>,
    /// Our nonce.
    pub(super) nonce: Option<Vec<u8>>,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Id,
    Table,
    Fixed(usize),
}

/// The properties in the order of their flags, from bit 15 down.
const PROPERTIES: [Kind; 14] = [
    Kind::Text,     // content_type
    Kind::Text,     // content_encoding
    Kind::Table,    // headers
    Kind::Fixed(1), // delivery_mode
    Kind::Fixed(1), // priority
    Kind::Text,     // correlation_id
    Kind::Text,     // reply_to
    Kind::Text,     // expiration
    Kind::Id,       // message_id
    Kind::Fixed(8), // timestamp
    Kind::Text,     // type
    Kind::Text,     // user_id
    Kind::Text,     // app_id
    Kind::Text,     // cluster_id
];

/// Mends a content header. `None` if it is not one that lapin could read.
pub(super) fn mend(payload: &mut [u8]) -> Option<Content> {
    let mut content = Content::default();
    let mut cursor = Cursor::new(payload);
    if cursor.u16()? != BASIC {
        return None;
    }
    cursor.take(2 + 8)?;
    let flags = cursor.u16()?;
    for (bit, kind) in PROPERTIES.into_iter().enumerate() {
        if flags & (0x8000 >> bit) == 0 {
            continue;
        }
        match kind {
            Kind::Fixed(len) => cursor.take(len).map(|_| ())?,
            Kind::Text => {
                mend_text(cursor.short()?);
            }
            Kind::Table => mend_headers(cursor.long()?, own::NONCE, &mut content.nonce)?,
            Kind::Id => content.raw_id = mend_id(cursor.short()?),
        }
    }
    Some(content)
}

fn mend_id(id: &mut [u8]) -> Option<Vec<u8>> {
    let raw = std::str::from_utf8(id).is_err().then(|| id.to_vec());
    mend_text(id);
    raw
}
