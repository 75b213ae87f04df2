use std::future::Future;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use futures_io::{AsyncRead, AsyncWrite};
use futures_util::Stream;

use super::Wire;

pub(crate) type WireRuntime = Runtime<RuntimeParts<Tokio, WireReactor>>;

/// lapin's tokio runtime with our stream as the type of its connections.
pub(crate) fn runtime() -> WireRuntime {
    Runtime::new(RuntimeParts::new(Tokio::current(), WireReactor(Tokio::current())))
}

#[derive(Clone, Debug)]
pub(crate) struct WireReactor(Tokio);

impl Reactor for WireReactor {
    type TcpStream = Wire;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + AsFd + AsRawFd + Send + 'static>(
        &self,
        socket: H,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static> {
        self.0.register(socket)
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.0.sleep(time)
    }

    fn interval(&self, time: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(time)
    }

    fn tcp_connect_addr(
        &self,
        _address: SocketAddr,
    ) -> impl Future<Output = io::Result<Wire>> + Send + 'static {
        // The connector that we give to lapin opens every stream.
        std::future::ready(Err(io::Error::from(io::ErrorKind::Unsupported)))
    }
}
