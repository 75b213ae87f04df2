use crate::proxy::{Direction, Pattern};

use super::*;

const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

#[tokio::test]
async fn cut_before_keeps_the_match_from_the_server() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let trigger = stage.proxy.cut_before(Direction::ToServer, Pattern::bytes(COMMIT));
    send(&mut client, b"INSERT ").await;
    arrives(&mut server, b"INSERT ").await;
    send(&mut client, &[b"more ", COMMIT, b"after"].concat()).await;
    soon(trigger.fired()).await;
    is_reset(&mut client).await;
    assert_eq!(rest(&mut server).await, b"more ");
}

#[tokio::test]
async fn cut_after_brings_the_match_to_the_server_and_no_answer_back() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let trigger = stage.proxy.cut_after(Direction::ToServer, Pattern::bytes(COMMIT));
    send(&mut client, &[b"INSERT ", COMMIT, b"after"].concat()).await;
    soon(trigger.fired()).await;
    is_reset(&mut client).await;
    // Unread while the server still writes: an early reset would lose it.
    send(&mut server, b"done").await;
    assert_eq!(rest(&mut server).await, [b"INSERT ", COMMIT].concat());
}

#[tokio::test]
async fn cut_before_keeps_the_answer_from_the_client() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let trigger = stage.proxy.cut_before(Direction::ToClient, Pattern::bytes(*b"COMMIT\0"));
    send(&mut client, COMMIT).await;
    arrives(&mut server, COMMIT).await;
    send(&mut server, b"C\0\0\0\x0bCOMMIT\0Z").await;
    soon(trigger.fired()).await;
    is_reset(&mut server).await;
    assert_eq!(rest(&mut client).await, b"C\0\0\0\x0b");
}

#[tokio::test]
async fn swallow_answers_lets_the_server_go_on_while_the_client_hears_nothing() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    works(&mut client, &mut server).await;
    let trigger = stage.proxy.swallow_answers_after(Pattern::bytes(COMMIT));
    send(&mut client, COMMIT).await;
    soon(trigger.fired()).await;
    arrives(&mut server, COMMIT).await;
    send(&mut server, b"committed").await;
    soon(stage.proxy.wait_until(|counts| counts.swallowed == 9)).await;
    send(&mut client, b"hello?").await;
    arrives(&mut server, b"hello?").await;
    is_silent(&client);
    let (mut other_client, mut other_server) = stage.pair().await;
    works(&mut other_client, &mut other_server).await;
    stage.proxy.cut();
    is_reset(&mut client).await;
    is_reset(&mut server).await;
}

#[tokio::test]
async fn a_swallowed_answer_can_be_the_moment_of_a_cut() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let swallow = stage.proxy.swallow_answers_after(Pattern::bytes(COMMIT));
    let cut = stage.proxy.cut_after(Direction::ToClient, Pattern::bytes(*b"committed"));
    send(&mut client, COMMIT).await;
    arrives(&mut server, COMMIT).await;
    send(&mut server, b"committed").await;
    soon(cut.fired()).await;
    assert!(swallow.has_fired());
    is_reset(&mut server).await;
    assert_eq!(rest(&mut client).await, b"");
}

#[tokio::test]
async fn finds_a_pattern_that_comes_in_pieces() {
    let stage = Stage::set().await;
    for split in 1..COMMIT.len() {
        let trigger = stage.proxy.cut_after(Direction::ToServer, Pattern::bytes(COMMIT));
        let (mut client, mut server) = stage.pair().await;
        send(&mut client, &COMMIT[..split]).await;
        arrives(&mut server, &COMMIT[..split]).await;
        assert!(!trigger.has_fired());
        send(&mut client, &[&COMMIT[split..], b"after"].concat()).await;
        assert_eq!(rest(&mut server).await, &COMMIT[split..]);
        soon(trigger.fired()).await;
    }
}

#[tokio::test]
async fn pieces_of_two_connections_make_no_match() {
    let stage = Stage::set().await;
    let trigger = stage.proxy.cut_after(Direction::ToServer, Pattern::bytes(*b"ab"));
    let (mut one, mut one_server) = stage.pair().await;
    let (mut other, mut other_server) = stage.pair().await;
    send(&mut one, b"a").await;
    arrives(&mut one_server, b"a").await;
    send(&mut other, b"b").await;
    arrives(&mut other_server, b"b").await;
    assert!(!trigger.has_fired());
    works(&mut one, &mut one_server).await;
    works(&mut other, &mut other_server).await;
}

#[tokio::test]
async fn a_predicate_sees_what_it_asked_to_carry() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    // An AMQP 0-9-1 method frame of class 60, method 40 (basic.publish), on whatever channel.
    let publish = Pattern::predicate(10, |seen| {
        let is_publish = |frame: &[u8]| frame[0] == 1 && frame[7..11] == [0, 60, 0, 40];
        seen.windows(11).position(is_publish).map(|start| start..start + 11)
    });
    let trigger = stage.proxy.cut_before(Direction::ToServer, publish);
    send(&mut client, b"\x01\0\x05\0\0\0\x09\0\x3c\0\x50........\xce").await;
    arrives(&mut server, b"\x01\0\x05\0\0\0\x09\0\x3c\0\x50........\xce").await;
    send(&mut client, b"\x01\0\x05\0\0\0\x09\0\x3c\0\x28........\xce").await;
    soon(trigger.fired()).await;
    assert_eq!(rest(&mut server).await, b"");
}

#[tokio::test]
async fn the_earliest_cut_wins_and_the_other_stays_armed() {
    let stage = Stage::set().await;
    let late = stage.proxy.cut_after(Direction::ToServer, Pattern::bytes(*b"two"));
    let early = stage.proxy.cut_after(Direction::ToServer, Pattern::bytes(*b"one"));
    let (mut client, mut server) = stage.pair().await;
    send(&mut client, b"one two three").await;
    soon(early.fired()).await;
    assert_eq!(rest(&mut server).await, b"one");
    assert!(!late.has_fired());
    let (mut client, mut server) = stage.pair().await;
    send(&mut client, b"one two three").await;
    soon(late.fired()).await;
    assert_eq!(rest(&mut server).await, b"one two");
}

#[tokio::test]
async fn a_disarmed_trigger_does_nothing() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let trigger = stage.proxy.cut_before(Direction::ToServer, Pattern::bytes(*b"question"));
    trigger.disarm();
    works(&mut client, &mut server).await;
    assert!(!trigger.has_fired());
}
