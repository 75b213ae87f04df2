use crate::proxy::Direction;

use super::*;

#[tokio::test]
async fn cuts_after_exactly_so_many_bytes_to_the_server() {
    let stage = Stage::set().await;
    for n in 0..=8 {
        let trigger = stage.proxy.cut_after_bytes(Direction::ToServer, n);
        let (mut client, mut server) = stage.pair().await;
        send(&mut client, b"01234567").await;
        soon(trigger.fired()).await;
        is_reset(&mut client).await;
        assert_eq!(rest(&mut server).await, &b"01234567"[..usize::try_from(n).unwrap()]);
        assert_eq!(stage.proxy.counts().cuts, n + 1);
    }
}

#[tokio::test]
async fn cuts_after_exactly_so_many_bytes_to_the_client() {
    let stage = Stage::set().await;
    for n in 0..=8 {
        let trigger = stage.proxy.cut_after_bytes(Direction::ToClient, n);
        let (mut client, mut server) = stage.pair().await;
        send(&mut client, b"any number of bytes the other way").await;
        send(&mut server, b"01234567").await;
        soon(trigger.fired()).await;
        is_reset(&mut server).await;
        assert_eq!(rest(&mut client).await, &b"01234567"[..usize::try_from(n).unwrap()]);
    }
}

#[tokio::test]
async fn counts_from_when_it_was_armed_over_several_pieces() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    works(&mut client, &mut server).await;
    let trigger = stage.proxy.cut_after_bytes(Direction::ToServer, 5);
    send(&mut client, b"012").await;
    arrives(&mut server, b"012").await;
    assert!(!trigger.has_fired());
    send(&mut client, b"345").await;
    assert_eq!(rest(&mut server).await, b"34");
    soon(trigger.fired()).await;
    is_reset(&mut client).await;
}

#[tokio::test]
async fn each_connection_has_its_own_count_and_only_one_is_cut() {
    let stage = Stage::set().await;
    let trigger = stage.proxy.cut_after_bytes(Direction::ToServer, 4);
    let (mut one, mut one_server) = stage.pair().await;
    let (mut other, mut other_server) = stage.pair().await;
    send(&mut one, b"012").await;
    arrives(&mut one_server, b"012").await;
    send(&mut other, b"012").await;
    arrives(&mut other_server, b"012").await;
    send(&mut one, b"3").await;
    soon(trigger.fired()).await;
    is_reset(&mut one).await;
    send(&mut other, b"3456").await;
    arrives(&mut other_server, b"3456").await;
    works(&mut other, &mut other_server).await;
}
