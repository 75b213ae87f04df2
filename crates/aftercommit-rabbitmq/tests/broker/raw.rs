//! A publisher that writes its own frames, for what no client library would send.

use std::io::{Read, Write};
use std::net::TcpStream;

/// One property or header table as the wire has it.
#[derive(Default)]
pub(crate) struct RawMessage {
    pub(crate) routing_key: Vec<u8>,
    pub(crate) headers: Vec<u8>,
    pub(crate) correlation_id: Option<Vec<u8>>,
    pub(crate) message_id: Option<Vec<u8>>,
    pub(crate) event_type: Option<Vec<u8>>,
    pub(crate) body: Vec<u8>,
}

pub(crate) fn short(text: &[u8]) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()], text].concat()
}

pub(crate) fn long(content: &[u8]) -> Vec<u8> {
    [&u32::try_from(content.len()).unwrap().to_be_bytes()[..], content].concat()
}

/// A table's entry: its name and the value with its type letter.
pub(crate) fn entry(name: &[u8], kind: u8, value: &[u8]) -> Vec<u8> {
    [short(name), vec![kind], value.to_vec()].concat()
}

/// A connection with one channel in confirm mode.
pub(crate) struct RawPublisher {
    stream: TcpStream,
}

impl RawPublisher {
    pub(crate) fn connect() -> Self {
        let url = url::Url::parse(&xtask::services::rabbitmq::url().unwrap()).unwrap();
        let address = (url.host_str().unwrap().to_owned(), url.port().unwrap_or(5672));
        let stream =
            TcpStream::connect(address).expect("RabbitMQ: start it with `cargo xtask services up rabbitmq`");
        stream.set_read_timeout(Some(super::support::PATIENCE)).unwrap();
        let mut this = Self { stream };
        this.stream.write_all(b"AMQP\x00\x00\x09\x01").unwrap();
        this.expect(10, 10);
        let login = format!("\0{}\0{}", url.username(), url.password().unwrap_or("guest"));
        this.method(
            0,
            10,
            11,
            &[long(b""), short(b"PLAIN"), long(login.as_bytes()), short(b"en_US")].concat(),
        );
        this.expect(10, 30);
        // Up to 16 channels, frames of 128 KiB, no heartbeats.
        this.method(0, 10, 31, &[0, 16, 0, 2, 0, 0, 0, 0]);
        this.method(0, 10, 40, &[short(b"/"), short(b""), vec![0]].concat());
        this.expect(10, 41);
        this.method(1, 20, 10, &short(b""));
        this.expect(20, 11);
        this.method(1, 85, 10, &[0]);
        this.expect(85, 11);
        this
    }

    /// Publishes through an exchange and waits for the confirm; `Err` tells how the broker refused.
    pub(crate) fn publish(&mut self, exchange: &str, message: &RawMessage) -> Result<(), String> {
        let RawMessage { routing_key, headers, correlation_id, message_id, event_type, body } = message;
        self.method(
            1,
            60,
            40,
            &[vec![0, 0], short(exchange.as_bytes()), short(routing_key), vec![0]].concat(),
        );
        let mut flags = (1 << 13) | (1 << 12);
        let mut properties = [long(headers), vec![2]].concat();
        for (bit, value) in [(10, correlation_id), (7, message_id), (5, event_type)] {
            if let Some(value) = value {
                flags |= 1 << bit;
                properties.extend(short(value));
            }
        }
        let size = u64::try_from(body.len()).unwrap().to_be_bytes();
        let header = [&[0, 60, 0, 0][..], &size, &u16::to_be_bytes(flags), &properties].concat();
        self.frame(2, 1, &header);
        if !body.is_empty() {
            self.frame(3, 1, body);
        }
        match self.read() {
            (60, 80, _) => Ok(()),
            (class, method, payload) => Err(format!(
                "{class}.{method}: {}",
                String::from_utf8_lossy(payload.get(2..).unwrap_or_default())
            )),
        }
    }

    fn method(&mut self, channel: u16, class: u16, method: u16, arguments: &[u8]) {
        let payload = [&class.to_be_bytes()[..], &method.to_be_bytes(), arguments].concat();
        self.frame(1, channel, &payload);
    }

    fn frame(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        let frame = [&[kind][..], &channel.to_be_bytes(), &long(payload), &[0xce]].concat();
        self.stream.write_all(&frame).unwrap();
    }

    fn expect(&mut self, class: u16, method: u16) {
        let (got_class, got_method, _) = self.read();
        assert_eq!((got_class, got_method), (class, method));
    }

    fn read(&mut self) -> (u16, u16, Vec<u8>) {
        let mut prefix = [0; 7];
        self.stream.read_exact(&mut prefix).unwrap();
        let len = u32::from_be_bytes([prefix[3], prefix[4], prefix[5], prefix[6]]);
        let mut payload = vec![0; usize::try_from(len).unwrap() + 1];
        self.stream.read_exact(&mut payload).unwrap();
        payload.pop();
        let number = |at| u16::from_be_bytes([payload[at], payload[at + 1]]);
        (number(0), number(2), payload[4..].to_vec())
    }
}
