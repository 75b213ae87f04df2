//! Returns and confirms in orders that a real broker may choose and rarely does, from a broker of a few
//! lines. lapin attaches a return to whichever confirm it applies next.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use aftercommit_core::{Destination, Message, PublishError};
use aftercommit_rabbitmq::Config;
use futures_util::future::join_all;

use crate::raw::{long, short};
use crate::support::{PATIENCE, send};

const COUNT: u64 = 40;
const NOWHERE: &str = "nowhere";

/// A publish as it came in: the tag that confirms it, and the frames that a return repeats.
struct Published {
    tag: u64,
    returned: bool,
    header: Vec<u8>,
    body: Vec<u8>,
}

struct Peer(TcpStream);

impl Peer {
    fn frame(&mut self, kind: u8, channel: u16, payload: &[u8]) {
        let frame = [&[kind][..], &channel.to_be_bytes(), &long(payload), &[0xce]].concat();
        self.0.write_all(&frame).unwrap();
    }

    fn method(&mut self, channel: u16, class: u16, method: u16, arguments: &[u8]) {
        self.frame(1, channel, &[&class.to_be_bytes()[..], &method.to_be_bytes(), arguments].concat());
    }

    /// The next frame that is no heartbeat: its type and payload.
    fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            let mut prefix = [0; 7];
            self.0.read_exact(&mut prefix).ok()?;
            let len = u32::from_be_bytes([prefix[3], prefix[4], prefix[5], prefix[6]]);
            let mut payload = vec![0; usize::try_from(len).unwrap() + 1];
            self.0.read_exact(&mut payload).ok()?;
            payload.pop();
            if prefix[0] != 8 {
                return Some((prefix[0], payload));
            }
        }
    }

    fn expect(&mut self, class: u16, method: u16) {
        let (_, payload) = self.read().unwrap();
        assert_eq!(payload[..4], [class.to_be_bytes(), method.to_be_bytes()].concat());
    }

    fn open(stream: TcpStream) -> Self {
        let mut peer = Self(stream);
        peer.0.read_exact(&mut [0; 8]).unwrap();
        peer.method(0, 10, 10, &[&[0, 9][..], &long(b""), &long(b"PLAIN"), &long(b"en_US")].concat());
        peer.expect(10, 11);
        peer.method(0, 10, 30, &[0, 16, 0, 2, 0, 0, 0, 0]);
        peer.expect(10, 31);
        peer.expect(10, 40);
        peer.method(0, 10, 41, &short(b""));
        peer
    }

    fn say_farewell(&mut self) {
        while let Some((_, payload)) = self.read() {
            match payload[..4] {
                [0, 20, 0, 40] => self.method(1, 20, 41, &[]),
                [0, 10, 0, 50] => self.method(0, 10, 51, &[]),
                _ => {}
            }
        }
    }

    fn published(&mut self) -> Vec<Published> {
        self.expect(20, 10);
        self.method(1, 20, 11, &long(b""));
        self.expect(85, 10);
        self.method(1, 85, 11, &[]);
        let mut all = Vec::new();
        for tag in 1..=COUNT {
            let (_, method) = self.read().unwrap();
            let (_, header) = self.read().unwrap();
            let (_, body) = self.read().unwrap();
            let returned = method.windows(NOWHERE.len()).any(|part| part == NOWHERE.as_bytes());
            all.push(Published { tag, returned, header, body });
        }
        all
    }

    fn give_back(&mut self, published: &Published) {
        let arguments =
            [&312_u16.to_be_bytes()[..], &short(b"NO_ROUTE"), &short(b""), &short(NOWHERE.as_bytes())];
        self.method(1, 60, 50, &arguments.concat());
        self.frame(2, 1, &published.header);
        self.frame(3, 1, &published.body);
    }

    fn ack(&mut self, tag: u64, multiple: bool) {
        self.method(1, 60, 80, &[&tag.to_be_bytes()[..], &[u8::from(multiple)]].concat());
    }
}

type Script = fn(&mut Peer, Vec<Published>);

/// Each return comes before its own confirm, as the broker promises; nothing else is alike.
const SCRIPTS: [(&str, Script); 4] = [
    ("one confirm for all", |peer, all| {
        all.iter().filter(|published| published.returned).for_each(|published| peer.give_back(published));
        peer.ack(COUNT, true);
    }),
    ("confirms backwards", |peer, all| {
        all.iter().filter(|published| published.returned).for_each(|published| peer.give_back(published));
        all.iter().rev().for_each(|published| peer.ack(published.tag, false));
    }),
    ("the good ones between a return and its confirm", |peer, all| {
        let (returned, good): (Vec<_>, Vec<_>) = all.into_iter().partition(|published| published.returned);
        for pair in returned.iter().zip(&good) {
            peer.give_back(pair.0);
            peer.ack(pair.1.tag, false);
            peer.ack(pair.0.tag, false);
        }
        good.iter().skip(returned.len()).for_each(|published| peer.ack(published.tag, false));
    }),
    ("confirmed in halves", |peer, all| {
        for half in all.chunks(usize::try_from(COUNT / 2).unwrap()) {
            half.iter().rev().filter(|published| published.returned).for_each(|one| peer.give_back(one));
            peer.ack(half.last().unwrap().tag, true);
        }
    }),
];

#[tokio::test]
async fn each_publish_gets_its_own_answer_whatever_the_order_of_returns_and_confirms() {
    for (name, script) in SCRIPTS {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("amqp://{}", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            // The first connection only looks whether it can; the second is the publisher's.
            let accept = || {
                let (stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                Peer::open(stream)
            };
            let mut first = accept();
            first.expect(10, 50);
            first.method(0, 10, 51, &[]);
            let mut peer = accept();
            let all = peer.published();
            script(&mut peer, all);
            peer.say_farewell();
        });
        let broker = aftercommit_rabbitmq::connect(Config::new(&url).unwrap()).await.unwrap();
        let publisher = broker.publisher().await.unwrap();
        let publishes = (0..COUNT).map(|n| {
            let bad = n % 3 == 1;
            let to = Destination::new("").with_routing_key(if bad { NOWHERE } else { "somewhere" });
            let publisher = &publisher;
            async move { (n, bad, send(&**publisher, to, Message::new("alike")).await) }
        });
        for (n, bad, answer) in join_all(publishes).await {
            match answer {
                Ok(_) => assert!(!bad, "{name}: {n} was returned and is booked as sent"),
                Err(PublishError::Unroutable { .. }) => {
                    assert!(bad, "{name}: {n} was taken and is not booked")
                }
                Err(error) => panic!("{name}: {n}: {error}"),
            }
        }
        drop(publisher);
        tokio::task::spawn_blocking(move || serving.join().unwrap()).await.unwrap();
    }
}
