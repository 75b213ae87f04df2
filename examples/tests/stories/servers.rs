//! A virtual host and a database for one test alone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use aftercommit::Subscription;
use aftercommit::sql::sqlx::{self, AssertSqlSafe, Connection, PgConnection};
use aftercommit_examples::new_run;

const HELP: &str = "start it with `cargo xtask services up`";

/// Waits for a condition.
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) struct VirtualHost(String);

impl VirtualHost {
    pub(crate) fn new() -> Self {
        let host = Self(format!("examples-{}", new_run()));
        host.ask("PUT", &format!("vhosts/{}", host.0), "");
        let (user, _) = management().credentials;
        let rights = r#"{"configure": ".*", "write": ".*", "read": ".*"}"#;
        host.ask("PUT", &format!("permissions/{}/{user}", host.0), rights);
        host
    }

    pub(crate) fn url(&self) -> String {
        let url = xtask::services::rabbitmq::url().unwrap();
        let host = url.find("://").map_or(0, |at| at + 3);
        let end = url[host..].find('/').map_or(url.len(), |at| host + at);
        format!("{}/{}", &url[..end], self.0)
    }

    pub(crate) fn is_bound(&self, queue: &str) -> bool {
        let bindings = self.ask("GET", &format!("bindings/{}", self.0), "");
        bindings
            .contains(&format!(r#""source":"orders.events","vhost":"{}","destination":"{queue}""#, self.0))
    }

    /// How many messages a queue hands out that nobody has settled: up to 100.
    pub(crate) fn left_in(&self, queue: &str) -> usize {
        let subscription = Subscription::new("somebody-else", queue).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let broker = aftercommit::connect(&self.url()).await.unwrap();
            let mut source = broker.source(&subscription).await.unwrap();
            let found = tokio::time::timeout(Duration::from_millis(500), source.recv(100)).await;
            source.close().await.unwrap();
            found.map_or(0, |batch| batch.unwrap().len())
        })
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let Management { address, credentials: (user, password) } = management();
        let mut stream = TcpStream::connect(&address)
            .unwrap_or_else(|error| panic!("RabbitMQ's management API at {address}: {error}; {HELP}"));
        let authority = base64(format!("{user}:{password}").as_bytes());
        let length = body.len();
        let request = format!(
            "{method} /api/{path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic {authority}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 2"), "{method} {path} on {}: {answer}", self.0);
        answer
    }
}

impl Drop for VirtualHost {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.ask("DELETE", &format!("vhosts/{}", self.0), "");
        }
    }
}

struct Management {
    address: String,
    credentials: (String, String),
}

fn management() -> Management {
    let url = xtask::services::rabbitmq::management_url().unwrap();
    let (credentials, address) = url.trim_start_matches("http://").split_once('@').unwrap();
    let (user, password) = credentials.split_once(':').unwrap();
    Management {
        address: address.trim_end_matches('/').to_owned(),
        credentials: (user.to_owned(), password.to_owned()),
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = bytes.chunks(3).flat_map(|three| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        (0..4).map(move |at| {
            let index = (bits >> (18 - 6 * at) & 63) as usize;
            if at <= three.len() { char::from(LETTERS[index]) } else { '=' }
        })
    });
    letters.collect()
}

pub(crate) struct Database(String);

impl Database {
    pub(crate) fn new() -> Self {
        let name = format!("examples_{}", new_run());
        ask(&server(), |conn| {
            Box::pin(async move {
                let sql = AssertSqlSafe(format!("CREATE DATABASE {name}"));
                sqlx::raw_sql(sql).execute(conn).await.unwrap();
                Self(name)
            })
        })
    }

    pub(crate) fn url(&self) -> String {
        let url = server();
        format!("{}/{}", &url[..url.rfind('/').unwrap()], self.0)
    }

    /// How many rows a table has; `None` while there is no such table.
    pub(crate) fn count(&self, table: &'static str) -> Option<i64> {
        ask(&self.url(), |conn| {
            Box::pin(async move {
                sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
                    .fetch_one(conn)
                    .await
                    .ok()
            })
        })
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let name = self.0.clone();
        ask(&server(), |conn| {
            Box::pin(async move {
                let sql = AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)"));
                sqlx::raw_sql(sql).execute(conn).await.unwrap();
            })
        });
    }
}

fn server() -> String {
    xtask::services::postgres::url().unwrap()
}

type Answer<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + 'a>>;

fn ask<T>(url: &str, question: impl for<'a> FnOnce(&'a mut PgConnection) -> Answer<'a, T>) -> T {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let connected = PgConnection::connect(url).await;
        let mut conn = connected.unwrap_or_else(|error| panic!("PostgreSQL: {error}; {HELP}"));
        let answer = question(&mut conn).await;
        conn.close().await.unwrap();
        answer
    })
}
