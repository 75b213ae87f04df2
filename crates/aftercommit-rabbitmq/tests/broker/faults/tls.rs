//! TLS and logins by certificate, on a node of its own with an authority of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use aftercommit_core::{BrokerError, Destination, Message, Subscription};
use aftercommit_rabbitmq::{Config, Sasl, connect};
use tokio::task::spawn_blocking;
use xtask::services::rabbitmq::{Node, NodeOptions};

use crate::support::{ack, one, send, text};

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(crate::support::unique("tls"));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn openssl(&self, arguments: &str) {
        let done = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(&self.0)
            .output()
            .expect("openssl");
        assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// A key and a certificate of our authority.
    fn certificate(&self, name: &str, subject: &str) {
        self.openssl(&format!(
            "req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={subject}"
        ));
        let sign = format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out {name}.pem"
        );
        self.openssl(&format!("{sign} -extfile san.txt"));
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(folder: &Folder, port: u16) -> Node {
    std::fs::write(folder.file("san.txt"), "subjectAltName=DNS:localhost\n").unwrap();
    folder.openssl(
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-authority",
    );
    folder.certificate("server", "localhost");
    folder.certificate("client", "certified");
    let [ca, certificate, key] = ["ca.pem", "server.pem", "server.key"].map(|name| folder.file(name));
    let config = format!(
        "listeners.ssl.1 = 127.0.0.1:{port}\nssl_options.cacertfile = {ca}\nssl_options.certfile = {certificate}\n\
         ssl_options.keyfile = {key}\nssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = false\n\
         ssl_cert_login_from = common_name\nauth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = EXTERNAL\n"
    );
    let node = Node::start(NodeOptions { extra_config: &config }).expect("a private RabbitMQ node");
    // The plugin that knows EXTERNAL, started by hand: its place is beside the broker's own.
    let plugin = "code:add_patha(code:lib_dir(rabbit) ++ \"/../rabbitmq_auth_mechanism_ssl-\" ++ \
                  rabbit_misc:version() ++ \"/ebin\"), \
                  {ok, _} = application:ensure_all_started(rabbitmq_auth_mechanism_ssl), \
                  rabbit_boot_steps:run_boot_steps([rabbitmq_auth_mechanism_ssl]).";
    node.ctl(&["eval", plugin]).unwrap();
    node.ctl(&["add_user", "certified", "no-password-is-used"]).unwrap();
    node.ctl(&["clear_password", "certified"]).unwrap();
    node.ctl(&["set_permissions", "certified", ".*", ".*", ".*"]).unwrap();
    node
}

async fn round_trip(config: Config) {
    let broker = connect(config).await.unwrap();
    let subscription = Subscription::new("tester", crate::support::unique("tls")).unwrap();
    broker.declare(&subscription).await.unwrap();
    let to = Destination::new("").with_routing_key(&subscription.source);
    // More than a record of TLS holds.
    let body = "encrypted ".repeat(50_000);
    send(&*broker.publisher().await.unwrap(), to, Message::new(body.clone())).await.unwrap();
    let delivery = one(&mut broker.source(&subscription).await.unwrap()).await;
    assert_eq!(text(&delivery), body);
    drop(ack(delivery).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_and_clients_are_known_by_their_certificates() {
    let folder = Folder::new();
    let port = xtask::ports::reserve().unwrap();
    let (folder, node) = spawn_blocking({
        let port = port.get();
        move || {
            let node = start(&folder, port);
            (folder, node)
        }
    })
    .await
    .unwrap();
    let url = format!("amqps://localhost:{}", port.get());
    let file = |name: &str| Path::new(&folder.file(name)).to_owned();
    let trusting = || Config::new(&url).unwrap().with_authority(file("ca.pem"));

    round_trip(trusting()).await;
    round_trip(Config::new(&format!("{url}?cacertfile={}", folder.file("ca.pem"))).unwrap()).await;

    let error = connect(Config::new(&url).unwrap()).await.err().expect("an authority nobody trusts");
    assert!(matches!(error, BrokerError::Unreachable { .. }), "{error:?}");
    let other_name = format!("amqps://127.0.0.1:{}", port.get());
    let error = connect(Config::new(&other_name).unwrap().with_authority(file("ca.pem"))).await;
    let error = error.err().expect("a name that is not in the certificate");
    assert!(matches!(error, BrokerError::Unreachable { .. }), "{error:?}");

    let certified =
        trusting().with_sasl(Sasl::External).with_client_certificate(file("client.pem"), file("client.key"));
    round_trip(certified).await;
    let error =
        connect(trusting().with_sasl(Sasl::External)).await.err().expect("a login without a certificate");
    assert!(matches!(error, BrokerError::Denied { .. }), "{error:?}");

    let unreadable = connect(Config::new(&url).unwrap().with_authority(file("missing.pem"))).await;
    let error = unreadable.err().expect("a file that is not there");
    assert!(
        matches!(error, BrokerError::Config(_)) && error.to_string().contains("missing.pem"),
        "{error:?}"
    );
    drop(spawn_blocking(move || drop(node)).await);
}
