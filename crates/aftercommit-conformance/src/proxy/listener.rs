use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::task::Poll;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

const BACKLOG: u32 = 1024;

/// A port that is ours also while nobody listens on it.
#[derive(Debug)]
pub(super) struct Listener {
    addr: SocketAddr,
    // Bound and never listening: clients are refused, yet nobody else can take the port.
    _reserved: TcpSocket,
    listening: Option<TcpListener>,
}

impl Listener {
    pub(super) fn bind() -> io::Result<Self> {
        let reserved = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let addr = reserved.local_addr()?;
        let mut listener = Self { addr, _reserved: reserved, listening: None };
        listener.open()?;
        Ok(listener)
    }

    pub(super) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(super) fn open(&mut self) -> io::Result<()> {
        if self.listening.is_none() {
            self.listening = Some(bound(self.addr)?.listen(BACKLOG)?);
        }
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.listening = None;
    }

    /// The next client; `None` when accepting failed. Waits for ever while closed.
    pub(super) async fn next(&self) -> Option<TcpStream> {
        match &self.listening {
            Some(listening) => listening.accept().await.ok().map(|(client, _)| client),
            None => std::future::pending().await,
        }
    }

    /// The clients that believe to be connected, though nobody has accepted them yet.
    pub(super) async fn waiting(&self) -> Vec<TcpStream> {
        // Lets the runtime ask the system once more what is ready.
        tokio::task::yield_now().await;
        let Some(listening) = &self.listening else {
            return Vec::new();
        };
        poll_fn(|context| {
            let mut clients = Vec::new();
            while let Poll::Ready(Ok((client, _))) = listening.poll_accept(context) {
                clients.push(client);
            }
            Poll::Ready(clients)
        })
        .await
    }
}

fn bound(addr: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    Ok(socket)
}
