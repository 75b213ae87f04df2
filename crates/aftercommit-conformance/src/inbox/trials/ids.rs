//! Where ids come from, and ids that are missing, odd or too long.

use std::collections::BTreeSet;

use aftercommit_core::dead_letter::header;
use aftercommit_core::identity::Field;
use aftercommit_core::{HeaderValue, IdPolicy, IdSource, Message, MissingId, PublishError};
use aftercommit_inbox::{InboxStore, Outcome};

use super::text;
use crate::inbox::probe::Step;
use crate::inbox::scene::{Done, Scene, ensure, id, ids, message};

super::cases! { "ids":
    h01_ids_that_differ_by_case_or_accent_are_different,
    h01_consumers_that_differ_by_case_are_different [Copies],
    h02_too_long_is_a_dead_letter_and_never_cut,
    h03_without_an_id_each_is_a_dead_letter,
    h03_made_up_ids_run_all,
    h12_nul_in_an_id_harms_nobody_else,
    h12_nul_in_body_header_and_error_is_kept_or_shown,
    a_field_of_the_json_body,
    source_and_id_of_a_cloud_event,
    several_fields_together,
}

const ODD: [&str; 8] = [
    "evt-4qD329Bz",
    "evt-4qd329bz",
    "caf\u{e9}-1",
    "cafe\u{301}-1",
    "cafe-1",
    "stra\u{df}e",
    "strasse",
    "\u{1f980}'; DROP TABLE effects; --",
];

async fn h01_ids_that_differ_by_case_or_accent_are_different<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?).await?;
    let spaced = ["evt 1", "evt 1 ", " evt 1"];
    for id in ODD.iter().chain(&spaced).chain(&ODD) {
        scene.send(message(id)).await?;
    }
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 11)?;
    player.counted(Outcome::Duplicate, 8)?;
    scene.stop(player).await?;
    scene.each_once(ODD.into_iter().chain(spaced)).await?;
    let handled: BTreeSet<_> = scene.ledger.handled().await?.into_iter().map(|(_, id)| id).collect();
    let sent: BTreeSet<_> = ODD.into_iter().chain(spaced).map(str::to_owned).collect();
    ensure!(handled == sent, "the inbox holds {handled:?}");
    Ok(())
}

async fn h01_consumers_that_differ_by_case_are_different<S: InboxStore>(scene: Scene<S>) -> Done {
    let mut players = Vec::new();
    let names = ["billing", "Billing"];
    for name in names {
        let subscription = scene.stage.subscription(name, super::TOPIC)?;
        scene.broker.declare(&subscription).await?;
        let cast = scene.consumer(&scene.probe_of(name, |_| Step::Apply)).await?;
        players.push(scene.start_on(cast, scene.stage.connect().await?, subscription).await?);
    }
    scene.send_ids(0..5).await?;
    scene.until_effects(10).await?;
    for player in players {
        scene.stop(player).await?;
    }
    for name in names {
        scene.each_once_of(name, ids(0..5)).await?;
    }
    Ok(())
}

async fn h02_too_long_is_a_dead_letter_and_never_cut<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?).await?;
    let (longest, emoji) = ("a".repeat(255), "\u{1f980}".repeat(63));
    scene.send(message(&longest)).await?;
    scene.send(message(&emoji)).await?;
    let mut too_long = 0;
    let long = |end: &str| format!("{}{end}", "a".repeat(255));
    for id in [long("1"), long("2"), "b".repeat(300), "\u{1f980}".repeat(64), "c".repeat(10_000)] {
        match scene.try_send(Message::new("too long").with_id(id)).await? {
            Ok(()) => too_long += 1,
            // This product's ids have a limit of their own.
            Err(PublishError::Refused { later: false, .. } | PublishError::TooLarge { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    scene.send(message(&id(1))).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Parked, too_long)?;
    scene.stop(player).await?;
    for letter in scene.letters(usize::try_from(too_long)?).await? {
        let error = text(&letter, header::ERROR);
        ensure!(error.starts_with("message id too long: "), "the reason is {error:?}");
        ensure!(letter.headers.get(header::ATTEMPTS).and_then(HeaderValue::as_i64) == Some(1), "attempts");
    }
    scene.each_once([longest, emoji, id(1)]).await
}

/// The same body twice: two legitimate messages may look alike.
const NAMELESS: [Option<&str>; 6] = [None, None, Some(""), Some(""), Some("   "), Some("\t")];

async fn send_nameless<S: InboxStore>(scene: &Scene<S>) -> Done {
    for (number, id) in NAMELESS.into_iter().enumerate() {
        let mut message = Message::new(format!("body {}", number / 2));
        message.id = id.map(|id| id.as_bytes().into());
        scene.send(message).await?;
        scene.send(super::message(&super::id(number))).await?;
    }
    Ok(())
}

async fn h03_without_an_id_each_is_a_dead_letter<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    send_nameless(&scene).await?;
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Parked, 6)?;
    player.counted(Outcome::Duplicate, 0)?;
    scene.stop(player).await?;
    for letter in scene.letters(6).await? {
        let error = text(&letter, header::ERROR);
        ensure!(error == "no message id", "the reason is {error:?}");
    }
    scene.each_once(ids(0..6)).await
}

async fn h03_made_up_ids_run_all<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    send_nameless(&scene).await?;
    let policy = IdPolicy { missing: MissingId::MakeUp, ..IdPolicy::default() };
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.ids(policy))).await?;
    scene.until_empty().await?;
    player.counted(Outcome::Applied, 12)?;
    scene.stop(player).await?;
    let effects = scene.ledger.effects().await?;
    ensure!(effects.len() == 12, "{} effects of 12 messages", effects.len());
    scene.no_letters().await
}

async fn h12_nul_in_an_id_harms_nobody_else<S: InboxStore>(scene: Scene<S>) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let mut parked = 0;
    for number in 0..6 {
        scene.send(message(&id(number))).await?;
        if number == 2 {
            match scene.try_send(Message::new("NUL").with_id("evt\0one")).await? {
                Ok(()) => parked = 1,
                Err(PublishError::Refused { later: false, .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.until_empty().await?;
    scene.stop(player).await?;
    for letter in scene.letters(parked).await? {
        let error = text(&letter, header::ERROR);
        ensure!(error == "message id contains NUL", "the reason is {error:?}");
    }
    scene.each_once(ids(0..6)).await
}

async fn h12_nul_in_body_header_and_error_is_kept_or_shown<S: InboxStore>(scene: Scene<S>) -> Done {
    // The probe's failures have a NUL in their text.
    let probe = scene.probe(|_| Step::Fail);
    let body: &[u8] = b"{\"text\":\"a\\u0000b\"}\0\xff";
    let mut odd = Message::new(body).with_id(id(1));
    odd.headers.append("raw", HeaderValue::Text((&b"a\0b"[..]).into()));
    let player = scene.start(scene.consumer(&probe).await?).await?;
    scene.send(odd.clone()).await?;
    scene.until_empty().await?;
    scene.stop(player).await?;
    let letter = scene.letters(1).await?.remove(0);
    ensure!(letter.body == odd.body, "the body is {:?}", letter.body);
    ensure!(letter.headers.get("raw") == odd.headers.get("raw"), "the header is {:?}", letter.headers);
    let error = text(&letter, header::ERROR);
    ensure!(error == "downstream\\u{0} said 503", "the error is {error:?}");
    Ok(())
}

async fn a_field_of_the_json_body<S: InboxStore>(scene: Scene<S>) -> Done {
    let bodies =
        [r#"{"order":{"id":"o-1"},"n":1}"#, r#"{"n":2,"order":{"id":"o-1"}}"#, r#"{"order":{"id":7}}"#];
    let sent = bodies.map(Message::new).into_iter().collect();
    let reasons = ["the body is not JSON, and the message id is a field of it", "no message id"];
    let broken = ["{", r#"{"order":{}}"#].map(Message::new).into_iter().collect();
    by_policy(&scene, IdPolicy::json("/order/id"), sent, (2, 1), broken, &reasons).await
}

async fn source_and_id_of_a_cloud_event<S: InboxStore>(scene: Scene<S>) -> Done {
    let event = |source: &str, id: &str| {
        let mut message = Message::new(format!("{source} {id}"));
        message.headers.append("cloudEvents:source", source);
        message.headers.append("cloudEvents:id", id);
        message
    };
    let sent = vec![event("/shop", "1"), event("/shop", "1"), event("/store", "1"), event("/shop:1", "1")];
    let broken = vec![event("", "1"), Message::new("no event").with_id("native")];
    let policy = IdPolicy { source: IdSource::CloudEvents, ..IdPolicy::default() };
    by_policy(&scene, policy, sent, (3, 1), broken, &["no message id"]).await
}

async fn several_fields_together<S: InboxStore>(scene: Scene<S>) -> Done {
    let event = |order: &str, action: &str| {
        let mut message = Message::new(format!("{order} {action}"));
        message.headers.append("order", order);
        message.headers.append("action", action);
        message
    };
    // Without an escape the last two would be one.
    let sent =
        vec![event("1", "pay"), event("1", "ship"), event("1", "pay"), event("a:b", "c"), event("a", "b:c")];
    let mut half = Message::new("half");
    half.headers.append("order", "1");
    let fields = ["order", "action"].map(|name| Field::Header(name.into())).to_vec();
    let policy = IdPolicy { source: IdSource::Fields(fields), ..IdPolicy::default() };
    by_policy(&scene, policy, sent, (4, 1), vec![half], &["no message id"]).await
}

/// Sends good and broken messages and counts what became of them.
async fn by_policy<S: InboxStore>(
    scene: &Scene<S>,
    policy: IdPolicy,
    sent: Vec<Message>,
    (applied, duplicates): (u64, u64),
    broken: Vec<Message>,
    reasons: &[&str],
) -> Done {
    let probe = scene.probe(|_| Step::Apply);
    let player = scene.start(scene.consumer(&probe).await?.set(|consumer| consumer.ids(policy))).await?;
    let parked = broken.len();
    for message in sent.into_iter().chain(broken) {
        scene.send(message).await?;
    }
    scene.until_empty().await?;
    player.counted(Outcome::Applied, applied)?;
    player.counted(Outcome::Duplicate, duplicates)?;
    scene.stop(player).await?;
    let effects = scene.ledger.effects().await?.len();
    ensure!(u64::try_from(effects)? == applied, "{effects} effects");
    let found: BTreeSet<_> =
        scene.letters(parked).await?.iter().map(|letter| text(letter, header::ERROR)).collect();
    let expected: BTreeSet<_> = reasons.iter().map(|&reason| reason.to_owned()).collect();
    ensure!(found == expected, "the reasons are {found:?}");
    Ok(())
}
