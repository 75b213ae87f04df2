use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;

use super::connection;
use super::counts::Open;
use super::ended;
use super::listener::Listener;
use super::shared::Shared;
use super::socket::Socket;

#[derive(Clone, Copy, Debug)]
pub(super) enum Command {
    Cut,
    Refuse,
    Accept,
    Blackhole(bool),
    Latency(Duration),
}

#[derive(Debug)]
pub(super) struct Order {
    pub(super) command: Command,
    pub(super) answer: SyncSender<io::Result<()>>,
}

/// Listens, and serves on a thread of its own until the sender of `orders` is dropped.
pub(super) fn start(
    upstream: SocketAddr,
    shared: Arc<Shared>,
    orders: UnboundedReceiver<Order>,
) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    let (started, wait) = mpsc::sync_channel(1);
    let run = move || {
        let outcome = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .and_then(|runtime| Ok((runtime.block_on(async { Listener::bind() })?, runtime)));
        match outcome {
            Err(e) => drop(started.send(Err(e))),
            Ok((listener, runtime)) => {
                drop(started.send(Ok(listener.addr())));
                let engine = Engine { upstream, listener, connections: JoinSet::new(), shared };
                runtime.block_on(engine.run(orders));
            }
        }
    };
    let thread = thread::Builder::new().name("fault-proxy".to_owned()).spawn(run)?;
    let addr = wait.recv().map_err(|_| ended())??;
    Ok((addr, thread))
}

/// Everything happens on one thread, so that a command has taken effect on all connections once it is obeyed.
#[derive(Debug)]
struct Engine {
    upstream: SocketAddr,
    listener: Listener,
    connections: JoinSet<()>,
    shared: Arc<Shared>,
}

impl Engine {
    async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(order) => self.obey(order).await,
                    None => return,
                },
                Some(client) = self.listener.next() => self.serve(client),
                Some(_) = self.connections.join_next() => {}
            }
        }
    }

    async fn obey(&mut self, order: Order) {
        let outcome = match order.command {
            Command::Cut => {
                self.cut().await;
                Ok(())
            }
            Command::Refuse => {
                self.serve_waiting().await;
                self.listener.close();
                Ok(())
            }
            Command::Accept => self.listener.open(),
            Command::Blackhole(on) => {
                self.shared.set_blackhole(on);
                Ok(())
            }
            Command::Latency(each_way) => {
                self.shared.set_latency(each_way);
                Ok(())
            }
        };
        // Whoever asked does not wait any more.
        let _ = order.answer.send(outcome);
    }

    async fn cut(&mut self) {
        self.serve_waiting().await;
        self.shared.counts.cut(self.shared.counts.now().open);
        self.connections.shutdown().await;
    }

    async fn serve_waiting(&mut self) {
        for client in self.listener.waiting().await {
            self.serve(client);
        }
    }

    fn serve(&mut self, client: TcpStream) {
        let open = Open::new(&self.shared);
        // A socket already here: the task may be cut before it has run at all.
        let client = Socket::new(client);
        self.connections.spawn(connection::serve(client, self.upstream, Arc::clone(&self.shared), open));
    }
}
