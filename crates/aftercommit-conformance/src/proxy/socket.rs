use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One side of a connection. Dropped before [`end`](Self::end), it resets its peer: whatever ends a task ends so.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) stream: TcpStream,
    orderly: bool,
}

impl Socket {
    pub(super) fn new(stream: TcpStream) -> Self {
        // Only a matter of speed.
        let _ = stream.set_nodelay(true);
        Self { stream, orderly: false }
    }

    /// Both directions have ended by themselves.
    pub(super) fn end(mut self) {
        self.orderly = true;
    }

    /// Sends the end after all that was written.
    pub(super) async fn finish(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Reads until the peer has ended too: closing with bytes unread would be a reset, which can overtake what the
    /// peer has not read yet.
    pub(super) async fn drain(mut self) -> io::Result<()> {
        let mut nowhere = [0; 4096];
        while self.stream.read(&mut nowhere).await? > 0 {}
        self.end();
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.orderly {
            // Where the system refuses, the peer sees an orderly end instead.
            let _ = self.stream.set_zero_linger();
        }
    }
}
