//! A virtual host and a database for one test alone, so that what is left behind can be seen.

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

const HELP: &str = "start it with `cargo xtask services up`";

pub(crate) struct Servers {
    name: String,
}

impl Servers {
    pub(crate) fn new() -> Self {
        let name = format!("cli_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
        ask("PUT", &format!("vhosts/{name}"), "{}");
        let rights = r#"{"configure": ".*", "write": ".*", "read": ".*"}"#;
        ask("PUT", &format!("permissions/{name}/guest"), rights);
        let servers = Self { name };
        sql(&shared(), &format!("CREATE DATABASE {}", servers.name));
        servers
    }

    pub(crate) fn broker(&self) -> String {
        let url = xtask::services::rabbitmq::url().unwrap();
        let host = url.find("://").map_or(0, |at| at + 3);
        let end = url[host..].find('/').map_or(url.len(), |at| host + at);
        format!("{}/{}", &url[..end], self.name)
    }

    pub(crate) fn database(&self) -> String {
        let url = shared();
        format!("{}/{}", &url[..url.rfind('/').unwrap()], self.name)
    }

    /// Queues, exchanges that are not built in, and schemas of runs.
    pub(crate) fn left(&self) -> Vec<String> {
        let names = |kind: &str| -> Vec<String> {
            let all: Value = serde_json::from_str(&ask("GET", &format!("{kind}/{}", self.name), "")).unwrap();
            let all = all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
            all.filter(|name| !name.is_empty() && !name.starts_with("amq.")).collect()
        };
        let schemas = "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'aftercommit%'";
        [names("queues"), names("exchanges"), sql(&self.database(), schemas)].concat()
    }

    pub(crate) fn are_clean(&self) {
        assert_eq!(self.left(), Vec::<String>::new(), "left behind");
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        ask("DELETE", &format!("vhosts/{}", self.name), "");
        sql(&shared(), &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

fn shared() -> String {
    xtask::services::postgres::url().unwrap()
}

fn ask(method: &str, path: &str, body: &str) -> String {
    let base = xtask::services::rabbitmq::management_url().unwrap();
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("{base}/api/{path}"))
        .header("content-type", "application/json")
        .header("authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
        .body(body.to_owned())
        .unwrap();
    let answer = ureq::run(request);
    let mut answer = answer.unwrap_or_else(|error| panic!("RabbitMQ's management API: {error}; {HELP}"));
    answer.body_mut().read_to_string().unwrap()
}

fn sql(url: &str, text: &str) -> Vec<String> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let connected = PgConnection::connect(url).await;
        let mut conn = connected.unwrap_or_else(|error| panic!("PostgreSQL: {error}; {HELP}"));
        let rows = sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(&mut conn).await.unwrap();
        conn.close().await.unwrap();
        rows
    })
}
