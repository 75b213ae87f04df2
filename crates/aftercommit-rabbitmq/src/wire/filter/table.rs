use super::cursor::{Cursor, mend_text};

/// Tables and arrays inside each other, the headers themselves included. RabbitMQ has no limit.
pub(super) const DEEPEST: usize = 64;

/// Mends headers and puts the content of the long string under `wanted` into `found`. `None` if they
/// are no table that lapin could read; parts may be mended already.
pub(super) fn mend_headers(bytes: &mut [u8], wanted: &str, found: &mut Option<Vec<u8>>) -> Option<()> {
    let mut cursor = Cursor::new(bytes);
    while !cursor.is_at_end() {
        let name = cursor.short()?;
        mend_text(name);
        let is_wanted = name == wanted.as_bytes();
        let place = cursor.position();
        mend_value(&mut cursor, 1)?;
        if is_wanted && let [b'S', _, _, _, _, content @ ..] = cursor.since(place) {
            *found = Some(content.to_vec());
        }
    }
    Some(())
}

fn mend_table(bytes: &mut [u8], depth: usize) -> Option<()> {
    let mut cursor = Cursor::new(bytes);
    while !cursor.is_at_end() {
        mend_text(cursor.short()?);
        mend_value(&mut cursor, depth)?;
    }
    Some(())
}

fn mend_array(bytes: &mut [u8], depth: usize) -> Option<()> {
    let mut cursor = Cursor::new(bytes);
    while !cursor.is_at_end() {
        mend_value(&mut cursor, depth)?;
    }
    Some(())
}

/// Mends one value that lies in `depth` tables and arrays.
fn mend_value(cursor: &mut Cursor<'_>, depth: usize) -> Option<()> {
    let kind = cursor.u8()?;
    let fixed = match kind {
        b't' | b'b' | b'B' => 1,
        b's' | b'U' | b'u' => 2,
        b'I' | b'i' | b'f' => 4,
        b'D' => 5,
        b'L' | b'l' | b'd' | b'T' => 8,
        b'V' => 0,
        b'S' | b'x' => return cursor.long().map(|_| ()),
        b'F' | b'A' => return mend_nested(cursor, kind, depth),
        _ => return None,
    };
    cursor.take(fixed).map(|_| ())
}

/// A nested value that cannot be read or lies too deep becomes a byte array, which has the same form:
/// its length and its bytes.
fn mend_nested(cursor: &mut Cursor<'_>, kind: u8, depth: usize) -> Option<()> {
    let place = cursor.position() - 1;
    let bytes = cursor.long()?;
    let readable = match kind {
        _ if depth >= DEEPEST => None,
        b'F' => mend_table(bytes, depth + 1),
        _ => mend_array(bytes, depth + 1),
    };
    if readable.is_none() {
        cursor.set(place, b'x');
    }
    Some(())
}
