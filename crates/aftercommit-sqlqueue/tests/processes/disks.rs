//! Disks that are full or read-only: small file systems in memory, in a mount namespace of their own that ends with the
//! process, by `unshare` of util-linux.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use aftercommit_core::{Broker as _, Destination, Message, Outgoing, PublishError};
use aftercommit_sqlqueue::SqlQueue;
use tokio::process::Command;

use crate::Done;
use crate::roles::ROLE;
use crate::world::{config, subscription};

/// Runs a role on a file system of its own, with its folder as the argument.
async fn on_a_disk_of_its_own(role: &str, size: &str, then: &str) -> Done {
    let folder = tempfile::tempdir()?;
    let script = format!("mount -t tmpfs -o size={size} tmpfs \"$1\" && {then} exec \"$0\" \"$1\"");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]);
    command.arg(std::env::current_exe()?).arg(folder.path()).env(ROLE, role);
    let ended = command.stdin(Stdio::null()).kill_on_drop(true).output().await;
    let ended = ended.map_err(|error| format!("this test needs `unshare` of util-linux: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&ended.stderr);
    Err(format!("{}; if namespaces are forbidden here, run it as root: {text}", ended.status).into())
}

pub(crate) async fn full() -> Done {
    on_a_disk_of_its_own("on-a-full-disk", "16m", "").await
}

pub(crate) async fn read_only() -> Done {
    let then = "touch \"$1/there.db\" && mount -o remount,ro \"$1\" &&";
    on_a_disk_of_its_own("on-a-read-only-disk", "1m", then).await
}

pub(crate) async fn on_a_full_disk(folder: &Path) {
    let filler = folder.join("filler");
    fs::write(&filler, vec![1; 8 << 20]).unwrap();
    let queue = SqlQueue::connect(config(&folder.join("queue.db"))).await.unwrap();
    queue.declare(&subscription()).await.unwrap();
    let publisher = queue.publisher().await.unwrap();
    let publish = async || {
        let to = Destination::new("").with_routing_key("orders");
        publisher.publish(Outgoing::new(to, Message::new(vec![7; 100_000]))).await
    };
    let mut kept = 0;
    let error = loop {
        match publish().await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
    };
    assert!(kept > 3, "only {kept} found room");
    assert!(matches!(error, PublishError::Unknown { .. }) && error.is_retryable(), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("queue.db") && text.contains("disk is full") && text.contains("make room"),
        "{text}"
    );
    assert_eq!(queue.depth("orders").await.unwrap().total(), kept, "what was answered, and no more");

    fs::remove_file(&filler).unwrap();
    publish().await.unwrap();
    let mut source = queue.source(&subscription()).await.unwrap();
    for position in 0..=kept {
        let delivery = source.recv(1).await.unwrap().into_iter().next().unwrap();
        assert_eq!(delivery.message.body.as_deref(), Some([7; 100_000].as_slice()), "message {position}");
        #[expect(clippy::disallowed_methods, reason = "this test settles by hand")]
        delivery.into_acker().ack().await.unwrap();
    }
    assert_eq!(queue.depth("orders").await.unwrap().total(), 0);
}

pub(crate) async fn on_a_read_only_disk(folder: &Path) {
    for name in ["new.db", "there.db"] {
        let error = SqlQueue::connect(config(&folder.join(name))).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("right"), "{text}");
    }
}
