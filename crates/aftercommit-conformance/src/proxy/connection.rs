use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::Direction;
use super::counts::Open;
use super::pump::{End, Faults, Pump};
use super::shared::Shared;
use super::socket::Socket;

/// Serves one client until both sides have ended, one of them breaks, or it is cut.
pub(super) async fn serve(mut client: Socket, upstream: SocketAddr, shared: Arc<Shared>, open: Open) {
    if shared.is_blackhole() {
        return swallow(client, &shared).await;
    }
    let Ok(server) = TcpStream::connect(upstream).await else {
        return;
    };
    let mut server = Socket::new(server);
    match relay(&mut client, &mut server, &shared).await {
        End::Reset => {}
        End::Orderly => {
            client.end();
            server.end();
        }
        End::Cut { direction, trigger } => {
            let (sender, mut receiver) = match direction {
                Direction::ToServer => (client, server),
                Direction::ToClient => (server, client),
            };
            drop(sender);
            let finished = receiver.finish().await;
            drop(open);
            shared.counts.cut(1);
            trigger.happened();
            if finished.is_ok() {
                // It was cut: how the other side goes does not matter.
                let _ = receiver.drain().await;
            }
        }
    }
}

async fn relay(client: &mut Socket, server: &mut Socket, shared: &Shared) -> End {
    let faults = Faults::default();
    let (from_client, to_client) = client.stream.split();
    let (from_server, to_server) = server.stream.split();
    let up = Pump { direction: Direction::ToServer, shared, faults: &faults }.run(from_client, to_server);
    let down = Pump { direction: Direction::ToClient, shared, faults: &faults }.run(from_server, to_client);
    tokio::pin!(up, down);
    tokio::select! {
        end = &mut up => match end {
            End::Orderly => down.await,
            end => end,
        },
        end = &mut down => match end {
            End::Orderly => up.await,
            end => end,
        },
    }
}

/// Loses what comes, and stays when the client leaves.
async fn swallow(mut client: Socket, shared: &Shared) {
    let mut buffer = vec![0; 4096];
    while let Ok(n @ 1..) = client.stream.read(&mut buffer).await {
        shared.counts.swallowed(n);
    }
    std::future::pending().await
}
