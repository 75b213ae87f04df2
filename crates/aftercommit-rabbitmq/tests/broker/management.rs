//! What an operator does, by the management API.

use serde_json::{Value, json};
use url::Url;

fn call(method: &str, path: &str, body: Option<&Value>) -> u16 {
    let mut url = Url::parse(&xtask::services::rabbitmq::management_url().unwrap()).unwrap();
    let login = base64::Engine::encode(
        &base64::prelude::BASE64_STANDARD,
        format!("{}:{}", url.username(), url.password().unwrap_or_default()),
    );
    url.set_username("").unwrap();
    url.set_password(None).unwrap();
    let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
    let request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("{}api/{path}", url.as_str()))
        .header("authorization", format!("Basic {login}"))
        .header("content-type", "application/json")
        .body(body.map(Value::to_string).unwrap_or_default())
        .unwrap();
    agent.run(request).unwrap().status().as_u16()
}

fn must(method: &str, path: &str, body: Option<&Value>) {
    let status = call(method, path, body);
    assert!((200..300).contains(&status), "{method} {path} answered {status}");
}

pub(crate) fn put(path: &str, body: &Value) {
    must("PUT", path, Some(body));
}

pub(crate) fn delete(path: &str) {
    must("DELETE", path, None);
}

pub(crate) fn queue(name: &str, arguments: &Value) {
    put(&format!("queues/%2f/{name}"), &json!({ "durable": true, "arguments": arguments }));
}

pub(crate) fn delete_queue(name: &str) {
    delete(&format!("queues/%2f/{name}"));
}

/// Deletes things at the end of a test, without a word about those that are not there.
pub(crate) fn forget(paths: Vec<String>) {
    // The client blocks, which it must not do on a thread of the runtime.
    let forgetting = std::thread::spawn(move || {
        for path in paths {
            call("DELETE", &path, None);
        }
    });
    let _ = forgetting.join();
}

pub(crate) fn unbind(queue: &str, exchange: &str, key: &str) {
    delete(&format!("bindings/%2f/e/{exchange}/q/{queue}/{key}"));
}

/// A policy for one queue, removed when dropped.
pub(crate) struct Policy(String);

impl Policy {
    pub(crate) fn on(queue: &str, definition: &Value) -> Self {
        let pattern = format!("^{}$", queue.replace('.', "\\."));
        let path = format!("policies/%2f/{queue}");
        put(&path, &json!({ "pattern": pattern, "apply-to": "queues", "definition": definition }));
        Self(path)
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        let _ = call("DELETE", &self.0, None);
    }
}
