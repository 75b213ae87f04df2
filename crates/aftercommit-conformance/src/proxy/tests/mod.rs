mod bytes;
mod controls;
mod plain;
mod triggers;

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Proxy;

/// A proxy before a server whose side of each connection the test holds in its hand.
struct Stage {
    proxy: Proxy,
    server: TcpListener,
}

impl Stage {
    async fn set() -> Self {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let proxy = Proxy::start(server.local_addr().unwrap()).unwrap();
        Self { proxy, server }
    }

    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.proxy.addr()).await.unwrap()
    }

    /// Both ends of a new connection.
    async fn pair(&self) -> (TcpStream, TcpStream) {
        let client = self.client().await;
        let (server, _) = soon(self.server.accept()).await.unwrap();
        (client, server)
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), future).await.expect("happens within ten seconds")
}

async fn send(to: &mut TcpStream, bytes: &[u8]) {
    to.write_all(bytes).await.unwrap();
}

async fn arrives(at: &mut TcpStream, bytes: &[u8]) {
    let mut got = vec![0; bytes.len()];
    soon(at.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, bytes);
}

/// All bytes up to an orderly end.
async fn rest(of: &mut TcpStream) -> Vec<u8> {
    let mut got = Vec::new();
    soon(of.read_to_end(&mut got)).await.unwrap();
    got
}

/// After whatever it can still read.
async fn is_reset(stream: &mut TcpStream) {
    let outcome = soon(stream.read_to_end(&mut Vec::new())).await;
    assert_eq!(outcome.map_err(|e| e.kind()), Err(ErrorKind::ConnectionReset));
}

async fn works(client: &mut TcpStream, server: &mut TcpStream) {
    send(client, b"question").await;
    arrives(server, b"question").await;
    send(server, b"answer").await;
    arrives(client, b"answer").await;
}

/// Nothing has come, and the connection has not ended.
fn is_silent(stream: &TcpStream) {
    let outcome = stream.try_read(&mut [0; 16]);
    assert!(matches!(&outcome, Err(e) if e.kind() == ErrorKind::WouldBlock), "{outcome:?}");
}

async fn is_refused(proxy: &Proxy) {
    let outcome: io::Result<TcpStream> = soon(TcpStream::connect(proxy.addr())).await;
    assert_eq!(outcome.map(|_| ()).map_err(|e| e.kind()), Err(ErrorKind::ConnectionRefused));
}
