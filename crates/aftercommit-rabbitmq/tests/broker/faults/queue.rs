use aftercommit_core::SettleError;
use aftercommit_rabbitmq::QueueType;

use super::{until_down, until_up};
use crate::management;
use crate::support::{Queue, ack, config, nothing, one, text};

#[tokio::test]
async fn a_deleted_queue_is_waited_for_and_consumed_again() {
    for kind in [QueueType::Quorum, QueueType::Classic] {
        let queue = Queue::with(config().with_queue_type(kind), "recreated", None).await;
        queue.publish(["old"]).await;
        let mut source = queue.source().await;
        let health = source.health();
        let stale = one(&mut source).await;
        management::delete_queue(&queue.subscription.source);
        until_down(&health).await;
        nothing(&mut source).await;
        let reason = health.reason().unwrap();
        assert!(reason.contains(&queue.subscription.source), "{reason}");
        queue.broker.declare(&queue.subscription).await.unwrap();
        until_up(&health).await;
        queue.publish(["new"]).await;
        let fresh = one(&mut source).await;
        assert_eq!(text(&fresh), "new");
        let answer = ack(stale).await;
        assert!(matches!(answer, Err(SettleError::Lost { .. })), "{answer:?}");
        ack(fresh).await.unwrap();
    }
}
