use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::message::own;

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend(channel.to_be_bytes());
    frame.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    frame.extend(payload);
    frame.push(0xce);
    frame
}

fn short(text: &[u8]) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()], text].concat()
}

fn long(content: &[u8]) -> Vec<u8> {
    [&u32::try_from(content.len()).unwrap().to_be_bytes()[..], content].concat()
}

fn deliver(tag: u64, routing_key: &[u8]) -> Vec<u8> {
    [&[0, 60, 0, 60][..], &short(b"tag"), &tag.to_be_bytes(), &[0], &short(b"ex"), &short(routing_key)]
        .concat()
}

fn returned() -> Vec<u8> {
    [&[0, 60, 0, 50, 1, 0x38][..], &short(b"NO_ROUTE"), &short(b"ex"), &short(b"rk")].concat()
}

/// A content header with the properties of these flags.
fn content(flags: u16, properties: &[u8]) -> Vec<u8> {
    [&[0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1][..], &flags.to_be_bytes(), properties].concat()
}

const HEADERS: u16 = 1 << 13;
const MESSAGE_ID: u16 = 1 << 7;

/// What comes out when it goes in as pieces of this size.
fn through(bytes: &[u8], piece: usize) -> (Vec<u8>, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let mut filter = Filter::new(Arc::clone(&seen));
    let mut out = Vec::new();
    let mut buf = [0; 7];
    for piece in bytes.chunks(piece) {
        filter.feed(piece).unwrap();
        loop {
            match filter.take(&mut buf) {
                0 => break,
                len => out.extend_from_slice(&buf[..len]),
            }
        }
    }
    (out, seen)
}

#[test]
fn sound_frames_pass_unchanged_in_any_pieces() {
    let bytes = [
        frame(1, 0, b"\0\x0a\0\x0aanything"),
        frame(8, 0, b""),
        frame(1, 3, &deliver(1, "schlüssel".as_bytes())),
        frame(2, 3, &content(HEADERS, &long(&[short(b"n"), b"S".to_vec(), long(b"\xff\xfe")].concat()))),
        frame(3, 3, b"\xff"),
        frame(2, 3, b"\0"),
    ]
    .concat();
    for piece in 1..=bytes.len() {
        assert_eq!(through(&bytes, piece).0, bytes, "in pieces of {piece}");
    }
}

#[test]
fn another_protocol_passes_as_it_is() {
    assert_eq!(through(b"AMQP\x00\x01\x00\x00 and more", 3).0, b"AMQP\x00\x01\x00\x00 and more");
    assert_eq!(through(b"HTTP/1.1 400 Bad Request", 3).0, b"HTTP/1.1 400 Bad Request");
}

#[test]
fn texts_are_mended_and_the_id_is_kept() {
    let headers = long(&[short(b"na\xffme"), b"t\x01".to_vec()].concat());
    let bytes = [
        frame(1, 1, &deliver(9, b"r\xffk")),
        frame(2, 1, &content(HEADERS | MESSAGE_ID, &[headers, short(b"id\xc3")].concat())),
    ]
    .concat();
    let (out, seen) = through(&bytes, 5);
    let mended: Vec<u8> =
        bytes.iter().map(|byte| if matches!(byte, 0xff | 0xc3) { b'?' } else { *byte }).collect();
    assert_eq!(out, mended);
    assert_eq!(seen.take_raw_id(1, 9).as_deref(), Some(&b"id\xc3"[..]));
    assert_eq!(seen.take_raw_id(1, 9), None);
}

#[test]
fn a_return_is_known_by_its_nonce_only() {
    // A foreign header whose content looks like our entry must not be taken for it.
    let decoy = [short(own::NONCE.as_bytes()), b"S".to_vec(), long(b"forged")].concat();
    let headers = |nonce: &[u8]| {
        long(
            &[
                short(b"a"),
                b"x".to_vec(),
                long(&decoy),
                short(own::NONCE.as_bytes()),
                b"S".to_vec(),
                long(nonce),
            ]
            .concat(),
        )
    };
    let bytes = [
        frame(1, 1, &returned()),
        frame(2, 1, &content(HEADERS, &headers(b"n-1"))),
        frame(3, 1, b"x"),
        // The same header on a delivery is no return.
        frame(1, 1, &deliver(1, b"rk")),
        frame(2, 1, &content(HEADERS, &headers(b"n-2"))),
    ]
    .concat();
    let (out, seen) = through(&bytes, 64);
    assert_eq!(out, bytes);
    assert!(seen.take_returned("n-1"));
    assert!(!seen.take_returned("n-1") && !seen.take_returned("n-2") && !seen.take_returned("forged"));
}

#[test]
fn the_server_says_its_version_first() {
    let properties = [
        short(b"product"),
        b"S".to_vec(),
        long(b"RabbitMQ"),
        short(b"version"),
        b"S".to_vec(),
        long(b"3.10.8"),
    ];
    let start =
        [&[0, 10, 0, 10, 0, 9][..], &long(&properties.concat()), &long(b"PLAIN"), &long(b"en_US")].concat();
    let (_, seen) = through(&frame(1, 0, &start), 3);
    assert_eq!(seen.server_major(), Some(3));
    assert_eq!(Seen::default().server_major(), None);
}

#[test]
fn a_return_without_a_nonce_ends_the_connection() {
    let bytes = [frame(1, 1, &returned()), frame(2, 1, &content(MESSAGE_ID, &short(b"id")))].concat();
    assert!(Filter::new(Arc::default()).feed(&bytes).is_err());
}

fn nested(depth: usize, array: bool) -> Vec<u8> {
    let mut value = b"V".to_vec();
    for _ in 0..depth {
        value = if array {
            [b"A".to_vec(), long(&value)].concat()
        } else {
            [b"F".to_vec(), long(&[short(b""), value].concat())].concat()
        };
    }
    long(&[short(b"deep"), value].concat())
}

#[test]
fn nesting_beyond_reason_becomes_bytes() {
    for array in [false, true] {
        for (depth, mended) in [(5, false), (63, false), (64, true), (20_000, true)] {
            let bytes =
                [frame(1, 1, &deliver(1, b"rk")), frame(2, 1, &content(HEADERS, &nested(depth, array)))]
                    .concat();
            let (out, _) = through(&bytes, 1000);
            let changed: Vec<_> = out.iter().zip(&bytes).filter(|(out, sent)| out != sent).collect();
            assert_eq!(out.len(), bytes.len());
            assert_eq!(changed.len(), usize::from(mended), "depth {depth}");
            assert!(changed.iter().all(|(out, _)| **out == b'x'));
        }
    }
}

#[test]
fn a_nested_value_that_cannot_be_read_becomes_bytes() {
    for broken in [&b"Z"[..], b"S\0\0\0\x09x", b"\x05"] {
        let inner = [b"A".to_vec(), long(broken)].concat();
        let headers = long(&[short(b"n"), inner, short(b"after"), b"t\x01".to_vec()].concat());
        let bytes = [frame(1, 1, &deliver(1, b"rk")), frame(2, 1, &content(HEADERS, &headers))].concat();
        let (out, _) = through(&bytes, 1000);
        let changed: Vec<_> = out.iter().zip(&bytes).filter(|(out, sent)| out != sent).collect();
        assert_eq!(changed, [(&b'x', &b'A')], "{broken:?}");
    }
}

proptest! {
    #[test]
    fn nothing_makes_it_panic_or_lose_a_byte(
        frames in prop::collection::vec(
            (prop::sample::select(vec![1_u8, 2, 3, 8]), 0_u16..2, prop::collection::vec(any::<u8>(), 0..60)),
            0..6,
        ),
        piece in 1_usize..50,
    ) {
        let mut bytes = frame(1, 1, &deliver(1, b"rk"));
        for (kind, channel, payload) in &frames {
            let payload = if *kind == 2 { content(0xffff, payload) } else { payload.clone() };
            bytes.extend(frame(*kind, *channel, &payload));
        }
        prop_assert_eq!(through(&bytes, piece).0.len(), bytes.len());
    }
}
