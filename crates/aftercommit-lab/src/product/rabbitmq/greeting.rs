//! The server's version, which it says in its first frame and the client keeps to itself.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The version; `None` where it cannot be asked without TLS.
pub(super) async fn version(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok().filter(|url| url.scheme() == "amqp")?;
    let mut server = TcpStream::connect((url.host_str()?, url.port().unwrap_or(5672))).await.ok()?;
    server.write_all(b"AMQP\0\0\x09\x01").await.ok()?;
    // A frame begins with its type, channel and length.
    let mut head = [0; 7];
    server.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([head[3], head[4], head[5], head[6]]).min(1 << 16);
    let mut frame = vec![0; usize::try_from(length).ok()?];
    server.read_exact(&mut frame).await.ok()?;
    field(&frame, "version")
}

/// The value of a long string in the frame's table of properties.
fn field(frame: &[u8], name: &str) -> Option<String> {
    let mut key = vec![u8::try_from(name.len()).ok()?];
    key.extend_from_slice(name.as_bytes());
    key.push(b'S');
    let at = frame.windows(key.len()).position(|window| window == key)? + key.len();
    let (length, rest) = frame.get(at..)?.split_first_chunk::<4>()?;
    let value = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_among_other_properties() {
        let frame =
            b"\0\x0a\0\x0a\0\x09\0\0\0\x30\x07productS\0\0\0\x08RabbitMQ\x07versionS\0\0\0\x063.10.8\x07";
        assert_eq!(field(frame, "version").as_deref(), Some("3.10.8"));
        assert_eq!(field(b"\x07versionS\0\0\0\xff3", "version"), None, "cut off");
    }
}
