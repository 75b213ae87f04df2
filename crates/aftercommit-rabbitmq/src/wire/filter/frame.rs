use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::content;
use super::cursor::{Cursor, mend_text};
use super::seen::Seen;
use super::table::mend_headers;

/// Type, channel and size before a frame's payload; one byte ends it.
const PREFIX: usize = 7;
const METHOD: u8 = 1;
const HEADER: u8 = 2;
const BODY: u8 = 3;
const HEARTBEAT: u8 = 8;

/// Whose content header comes next on a channel.
#[derive(Clone, Copy)]
enum Expected {
    Delivery { tag: u64 },
    Return,
}

/// Takes what the socket gave in any pieces and hands it on in order, mended.
pub(crate) struct Filter {
    seen: Arc<Seen>,
    /// The start of a frame that is to be looked at and is not whole yet.
    partial: Vec<u8>,
    /// How many bytes of the current frame pass without a look.
    passing: usize,
    /// Not AMQP 0-9-1: lapin shall say what it thinks of it.
    foreign: bool,
    expected: HashMap<u16, Expected>,
    out: Vec<u8>,
    taken: usize,
}

impl Filter {
    pub(crate) fn new(seen: Arc<Seen>) -> Self {
        Self {
            seen,
            partial: Vec::new(),
            passing: 0,
            foreign: false,
            expected: HashMap::new(),
            out: Vec::new(),
            taken: 0,
        }
    }

    /// Moves bytes that are ready into `buf` and says how many.
    pub(crate) fn take(&mut self, buf: &mut [u8]) -> usize {
        let ready = &self.out[self.taken..];
        let len = ready.len().min(buf.len());
        buf[..len].copy_from_slice(&ready[..len]);
        self.taken += len;
        if self.taken == self.out.len() {
            self.out.clear();
            self.taken = 0;
        }
        len
    }

    /// # Errors
    /// A returned message without our nonce: its publish could not be told from one that arrived.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.foreign {
                self.out.extend_from_slice(bytes);
                return Ok(());
            }
            if self.passing > 0 {
                let (pass, rest) = bytes.split_at(self.passing.min(bytes.len()));
                self.out.extend_from_slice(pass);
                self.passing -= pass.len();
                bytes = rest;
                continue;
            }
            let missing = self.missing();
            let (part, rest) = bytes.split_at(missing.min(bytes.len()));
            self.partial.extend_from_slice(part);
            bytes = rest;
            if part.len() == missing {
                self.step()?;
            }
        }
        Ok(())
    }

    /// How many bytes the next step needs.
    fn missing(&self) -> usize {
        match self.partial.len() {
            have if have < PREFIX => PREFIX - have,
            have => PREFIX + payload_len(&self.partial) + 1 - have,
        }
    }

    fn step(&mut self) -> io::Result<()> {
        let whole = self.partial.len() > PREFIX;
        match self.partial[0] {
            METHOD | HEADER if !whole => return Ok(()),
            METHOD => self.method(),
            HEADER => self.header()?,
            BODY | HEARTBEAT => self.passing = payload_len(&self.partial) + 1,
            _ => self.foreign = true,
        }
        self.out.append(&mut self.partial);
        Ok(())
    }

    fn method(&mut self) {
        let channel = channel(&self.partial);
        let end = self.partial.len() - 1;
        match method(&mut self.partial[PREFIX..end]) {
            Some(Method::Start { version: Some(version) }) => self.seen.note_version(&version),
            Some(Method::Content(expected)) => {
                self.expected.insert(channel, expected);
            }
            _ => {}
        }
    }

    fn header(&mut self) -> io::Result<()> {
        let channel = channel(&self.partial);
        let end = self.partial.len() - 1;
        let content = content::mend(&mut self.partial[PREFIX..end]).unwrap_or_default();
        match (self.expected.remove(&channel), content.raw_id, content.nonce) {
            (Some(Expected::Return), _, Some(nonce)) => self.seen.note_returned(nonce),
            (Some(Expected::Return), _, None) => {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a returned message has no nonce"));
            }
            (Some(Expected::Delivery { tag }), Some(id), _) => self.seen.note_raw_id(channel, tag, id),
            _ => {}
        }
        Ok(())
    }
}

fn channel(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[1], frame[2]])
}

fn payload_len(frame: &[u8]) -> usize {
    let len = u32::from_be_bytes([frame[3], frame[4], frame[5], frame[6]]);
    usize::try_from(len).unwrap_or(usize::MAX - PREFIX - 1)
}

enum Method {
    Start { version: Option<Vec<u8>> },
    Content(Expected),
}

/// Reads the methods that matter, and mends the names in those that content follows.
fn method(payload: &mut [u8]) -> Option<Method> {
    let mut cursor = Cursor::new(payload);
    match (cursor.u16()?, cursor.u16()?) {
        (10, 10) => {
            cursor.take(2)?; // the protocol's version
            let mut version = None;
            mend_headers(cursor.long()?, "version", &mut version)?;
            Some(Method::Start { version })
        }
        (60, 60) => {
            cursor.short()?; // the consumer tag, which is ours
            let tag = cursor.u64()?;
            cursor.u8()?; // redelivered
            mend_text(cursor.short()?); // exchange
            mend_text(cursor.short()?); // routing key
            Some(Method::Content(Expected::Delivery { tag }))
        }
        (60, 50) => Some(Method::Content(Expected::Return)),
        _ => None,
    }
}
