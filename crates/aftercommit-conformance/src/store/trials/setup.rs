//! Tables and settings, before anything is consumed.

use std::sync::Arc;

use aftercommit_core::BoxError;
use aftercommit_inbox::{Fault, InboxStore};

use super::cases;
use crate::store::scene::{Done, Scene, ensure, expect_fault, ids};
use crate::store::stage::StoreStage;

cases! { "setup":
    a_migrated_store_passes_its_check,
    missing_tables_are_refused,
    many_may_migrate_at_once,
    migrating_again_keeps_what_is_there,
    newer_tables_are_refused,
    a_commit_that_can_vanish_is_refused,
}

type Stage<S> = Arc<dyn StoreStage<S>>;

async fn a_migrated_store_passes_its_check<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    Ok(scene.store.check().await?)
}

async fn missing_tables_are_refused<S: InboxStore>(stage: Stage<S>) -> Done {
    let store = stage.store(3).await?;
    expect_fault("the check without tables", store.check().await, Fault::Schema)
}

async fn many_may_migrate_at_once<S: InboxStore>(stage: Stage<S>) -> Done {
    let one = async || {
        let store = stage.store(1).await?;
        stage.migrate(&store).await?;
        store.check().await?;
        Ok::<_, BoxError>(())
    };
    tokio::try_join!(one(), one(), one(), one(), one(), one(), one(), one())?;
    let scene = Scene::open(stage).await?;
    let mut session = scene.store.open().await?;
    scene.goes_on(&mut session).await
}

async fn migrating_again_keeps_what_is_there<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let one = ids(&["1"])?;
    let mut session = scene.store.open().await?;
    scene.handle(&mut session, &one).await?;
    drop(session);
    scene.stage.migrate(&scene.store).await?;
    scene.expect_claims(&one).await
}

async fn newer_tables_are_refused<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    scene.stage.pretend_newer().await?;
    expect_fault("the check of newer tables", scene.store.check().await, Fault::Schema)?;
    ensure!(scene.stage.migrate(&scene.store).await.is_err(), "newer tables were migrated");
    Ok(())
}

async fn a_commit_that_can_vanish_is_refused<S: InboxStore>(stage: Stage<S>) -> Done {
    let scene = Scene::open(stage).await?;
    let unsafe_stores = scene.stage.unsafe_stores().await?;
    ensure!(!unsafe_stores.is_empty(), "the stage knows no setting under which a COMMIT vanishes");
    for (setting, store) in unsafe_stores {
        let checked = store.check().await;
        let text = checked.as_ref().err().map(ToString::to_string).unwrap_or_default();
        expect_fault(&format!("the check with {setting}"), checked, Fault::Unsafe)?;
        ensure!(text.contains(setting), "the refusal does not name {setting}: {text}");
    }
    Ok(())
}
