/// A place in a frame's payload. `None` from any method: the payload ends too early.
pub(super) struct Cursor<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) const fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// What was passed since a position.
    pub(super) fn since(&self, position: usize) -> &[u8] {
        &self.bytes[position..self.at]
    }

    /// Changes a byte that was passed.
    pub(super) const fn set(&mut self, at: usize, byte: u8) {
        self.bytes[at] = byte;
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&mut [u8]> {
        let end = self.at.checked_add(len)?;
        let part = self.bytes.get_mut(self.at..end)?;
        self.at = end;
        Some(part)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| bytes.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
    }

    /// The content of a short string: a length of one byte before it.
    pub(super) fn short(&mut self) -> Option<&mut [u8]> {
        let len = self.u8()?;
        self.take(len.into())
    }

    /// The content of a long string, table or array: a length of four bytes before it.
    pub(super) fn long(&mut self) -> Option<&mut [u8]> {
        let len = self.take(4)?;
        let len = u32::from_be_bytes([len[0], len[1], len[2], len[3]]);
        self.take(usize::try_from(len).ok()?)
    }
}

/// Puts `?` in place of every byte that is not UTF-8 and tells whether there was one.
pub(super) fn mend_text(mut text: &mut [u8]) -> bool {
    let mut mended = false;
    while let Err(error) = std::str::from_utf8(text) {
        let from = error.valid_up_to();
        let to = error.error_len().map_or(text.len(), |len| from + len);
        text[from..to].fill(b'?');
        text = &mut text[to..];
        mended = true;
    }
    mended
}
