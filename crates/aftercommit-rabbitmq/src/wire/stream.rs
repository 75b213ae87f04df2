use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_rs::traits::Reactor;
use async_rs::{Runtime, Tokio};
use futures_io::{AsyncRead, AsyncWrite};
use lapin::tcp::{AsyncTcpStream, OwnedTLSConfig};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::filter::{Filter, Seen};

type Socket = AsyncTcpStream<<Tokio as Reactor>::TcpStream>;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// A TCP or TLS connection whose incoming frames are looked at, and which ends when it is told to.
pub(crate) struct Wire {
    socket: Socket,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    filter: Filter,
    chunk: Box<[u8]>,
}

/// Connects to a host, with TLS if there is a configuration for it.
pub(crate) async fn open(
    (host, port): (&str, u16),
    tls: Option<&OwnedTLSConfig>,
    cut: CancellationToken,
    seen: Arc<Seen>,
) -> io::Result<Wire> {
    let runtime = Runtime::tokio_current();
    let addresses = runtime.to_socket_addrs((host.to_owned(), port));
    let mut socket = Socket::connect(&runtime, addresses).await?;
    if let Socket::Plain(tcp) = &socket {
        tcp.get_ref().set_nodelay(true)?;
    }
    if let Some(tls) = tls {
        socket = socket.into_tls(host, tls.as_ref()).await?;
    }
    Ok(Wire {
        socket,
        cut: Box::pin(cut.cancelled_owned()),
        filter: Filter::new(seen),
        chunk: vec![0; CHUNK].into_boxed_slice(),
    })
}

impl Wire {
    fn check_cut(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(cx) {
            Poll::Ready(()) => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "cut from our side")),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        this.check_cut(cx)?;
        loop {
            let taken = this.filter.take(buf);
            if taken > 0 || buf.is_empty() {
                return Poll::Ready(Ok(taken));
            }
            match Pin::new(&mut this.socket).poll_read(cx, &mut this.chunk) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(0)),
                Poll::Ready(Ok(read)) => this.filter.feed(&this.chunk[..read])?,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check_cut(cx)?;
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_close(cx)
    }
}
