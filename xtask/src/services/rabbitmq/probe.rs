//! Whether RabbitMQ answers, asked in its two protocols.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::error::{Doing, Error, Result};

const PATIENCE: Duration = Duration::from_secs(5);

/// An AMQP 0-9-1 server answers the protocol header with a method frame (type 1): `connection.start`.
pub(crate) fn amqp(port: u16) -> Result<()> {
    let mut answer = [0];
    let mut stream = connect(port)?;
    stream
        .write_all(b"AMQP\x00\x00\x09\x01")
        .and_then(|()| stream.read_exact(&mut answer))
        .doing(|| format!("speaking AMQP on port {port}"))?;
    match answer {
        [1] => Ok(()),
        [other] => Err(Error::new(format!("port {port} does not speak AMQP 0-9-1 (answered {other})"))),
    }
}

/// The management API answers an authenticated request.
pub(crate) fn management(port: u16) -> Result<()> {
    // guest:guest
    let request =
        "GET /api/overview HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\r\n";
    let mut status = [0; 12];
    let mut stream = connect(port)?;
    stream
        .write_all(request.as_bytes())
        .and_then(|()| stream.read_exact(&mut status))
        .doing(|| format!("speaking HTTP on port {port}"))?;
    if status.ends_with(b" 200") {
        return Ok(());
    }
    Err(Error::new(format!("management on port {port} answered {}", String::from_utf8_lossy(&status))))
}

/// Somebody listens.
pub(crate) fn connect(port: u16) -> Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream =
        TcpStream::connect_timeout(&address, PATIENCE).doing(|| format!("connecting to port {port}"))?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
        .doing(|| "setting time-outs".to_owned())?;
    Ok(stream)
}
