//! Declared, checked, never made as a side effect.

use std::sync::Arc;

use aftercommit_core::{BoxError, BrokerError, Finding, Message, Severity};

use super::cases;
use crate::broker::scene::{Scene, ensure};
use crate::broker::stage::{Part, Stage};

cases! { "topology":
    declaring_again_keeps_everything,
    declaring_over_other_settings_is_an_error [OtherSettings],
    opening_makes_and_settles_nothing [RemovedSource],
    a_check_finds_nothing_where_all_is_well,
    a_check_finds_a_missing_source [RemovedSource],
    a_check_finds_a_missing_dead_letter [RemovedDeadLetter],
    a_check_finds_a_missing_route [RemovedRoute],
    a_check_finds_a_dropping_limit [DroppingLimit],
    the_product_is_named_alike,
}

type Done = Result<(), BoxError>;

async fn declaring_again_keeps_everything(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..3).await?;
    scene.broker.declare(&scene.subscription).await?;
    scene.until_total(3).await?;
    scene.send_numbers(3..4).await?;
    scene.until_total(4).await
}

async fn declaring_over_other_settings_is_an_error(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let other = scene.stage.subscription("other", "topic")?;
    scene.stage.occupy(&other).await?;
    let answer = scene.broker.declare(&other).await;
    ensure!(
        matches!(answer, Err(BrokerError::Topology { .. })),
        "it exists with other settings, and declaring it answered {answer:?}"
    );
    // The connection serves on, though some brokers close a channel over this.
    scene.send(Message::new("next")).await?;
    Ok(())
}

async fn opening_makes_and_settles_nothing(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..2).await?;
    let source = scene.source().await?;
    scene.close_with(source, 2).await?;
    scene.stage.remove(Part::Source, &scene.subscription).await?;
    let opened = scene.broker.source(&scene.subscription).await;
    ensure!(
        matches!(opened, Err(BrokerError::Topology { .. })),
        "a source that does not exist was opened, or failed with {:?}",
        opened.err()
    );
    let depth = scene.depth().await;
    ensure!(depth.is_err(), "opening made the source: {depth:?}");
    Ok(())
}

async fn check(scene: &Scene) -> Result<Vec<Finding>, BoxError> {
    Ok(scene.within("the check", scene.broker.check(&scene.subscription)).await??)
}

async fn a_check_finds_nothing_where_all_is_well(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.send_numbers(0..2).await?;
    let findings = check(&scene).await?;
    ensure!(findings.is_empty(), "all is well, and the check found {findings:?}");
    scene.until_total(2).await
}

/// Found, refused, and still missing at the next look: a check mends nothing.
async fn finds(scene: &Scene) -> Done {
    for look in ["first", "second"] {
        let findings = check(scene).await?;
        let refused = findings.iter().any(|finding| finding.severity == Severity::Refuse);
        ensure!(refused, "the {look} check does not refuse: {findings:?}");
    }
    Ok(())
}

async fn a_check_finds_a_missing_source(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.stage.remove(Part::Source, &scene.subscription).await?;
    finds(&scene).await
}

async fn a_check_finds_a_missing_dead_letter(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.stage.remove(Part::DeadLetter, &scene.subscription).await?;
    finds(&scene).await
}

async fn a_check_finds_a_missing_route(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.stage.remove(Part::Route, &scene.subscription).await?;
    finds(&scene).await
}

async fn a_check_finds_a_dropping_limit(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.stage.limit(&scene.subscription).await?;
    let findings = check(&scene).await?;
    ensure!(!findings.is_empty(), "a limit drops messages and the check found nothing");
    Ok(())
}

async fn the_product_is_named_alike(stage: Arc<dyn Stage>) -> Done {
    let scene = Scene::open(stage).await?;
    let source = scene.source().await?;
    let (broker, source) = (scene.broker.product(), source.capabilities().product);
    ensure!(broker == source, "the broker is called {broker}, its source {source}");
    Ok(())
}
