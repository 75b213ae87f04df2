use std::time::Instant;

use tokio::net::TcpSocket;

use super::*;

#[tokio::test]
async fn cut_resets_both_sides_of_all_and_takes_new_ones() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let (mut other_client, mut other_server) = stage.pair().await;
    works(&mut client, &mut server).await;
    stage.proxy.cut();
    let counts = stage.proxy.counts();
    assert_eq!((counts.connections, counts.open, counts.cuts), (2, 0, 2));
    for stream in [&mut client, &mut server, &mut other_client, &mut other_server] {
        is_reset(stream).await;
    }
    let (mut client, mut server) = stage.pair().await;
    works(&mut client, &mut server).await;
}

#[tokio::test]
async fn cut_also_meets_clients_that_have_only_just_connected() {
    let stage = Stage::set().await;
    for round in 1..=200 {
        let mut client = stage.client().await;
        stage.proxy.cut();
        is_reset(&mut client).await;
        assert_eq!(stage.proxy.counts().cuts, round);
    }
}

#[tokio::test]
async fn refuse_turns_new_clients_away_and_keeps_the_old() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let addr = stage.proxy.addr();
    stage.proxy.refuse();
    is_refused(&stage.proxy).await;
    works(&mut client, &mut server).await;

    stage.proxy.accept().unwrap();
    stage.proxy.accept().unwrap();
    assert_eq!(stage.proxy.addr(), addr);
    let (mut new_client, mut new_server) = stage.pair().await;
    works(&mut new_client, &mut new_server).await;
    works(&mut client, &mut server).await;
}

#[tokio::test]
async fn refuse_keeps_the_port_also_when_nothing_is_connected() {
    let stage = Stage::set().await;
    stage.proxy.refuse();
    let stranger = TcpSocket::new_v4().unwrap();
    stranger.bind(stage.proxy.addr()).unwrap_err();
}

#[tokio::test]
async fn refuse_keeps_clients_that_have_only_just_connected() {
    let stage = Stage::set().await;
    for _ in 0..100 {
        let mut client = stage.client().await;
        stage.proxy.refuse();
        let (mut server, _) = soon(stage.server.accept()).await.unwrap();
        works(&mut client, &mut server).await;
        stage.proxy.accept().unwrap();
    }
}

#[tokio::test]
async fn a_blackhole_loses_everything_and_keeps_the_sockets_open() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let (mut idle_client, mut idle_server) = stage.pair().await;
    let (leaving, abandoned) = stage.pair().await;
    stage.proxy.blackhole();
    send(&mut client, b"12345").await;
    soon(stage.proxy.wait_until(|counts| counts.swallowed == 5)).await;
    send(&mut server, b"678").await;
    let mut newcomer = stage.client().await;
    send(&mut newcomer, b"90").await;
    soon(stage.proxy.wait_until(|counts| counts.swallowed == 10)).await;
    drop(leaving);
    for stream in [&client, &server, &newcomer, &abandoned] {
        is_silent(stream);
    }
    let counts = stage.proxy.counts();
    assert_eq!((counts.to_server, counts.to_client, counts.open), (0, 0, 4));

    stage.proxy.end_blackhole();
    works(&mut idle_client, &mut idle_server).await;
    let (mut new_client, mut new_server) = stage.pair().await;
    works(&mut new_client, &mut new_server).await;
    send(&mut client, b"with a gap").await;
    send(&mut server, b"also").await;
    soon(stage.proxy.wait_until(|counts| counts.swallowed == 24)).await;
    is_silent(&client);
    is_silent(&server);

    stage.proxy.cut();
    is_reset(&mut client).await;
    is_reset(&mut server).await;
    is_reset(&mut newcomer).await;
}

#[tokio::test]
async fn latency_delays_each_way_without_slowing_the_stream() {
    const EACH_WAY: Duration = Duration::from_millis(40);
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    works(&mut client, &mut server).await;
    stage.proxy.latency(EACH_WAY);
    let start = Instant::now();
    works(&mut client, &mut server).await;
    assert!(start.elapsed() >= 2 * EACH_WAY, "{:?}", start.elapsed());

    // At least 128 pieces, each of which is due on its own.
    let much = vec![7; 8 * 1024 * 1024];
    let start = Instant::now();
    tokio::join!(send(&mut client, &much), arrives(&mut server, &much));
    assert!(start.elapsed() >= EACH_WAY && start.elapsed() < 64 * EACH_WAY, "{:?}", start.elapsed());
}

#[tokio::test]
async fn bytes_stay_in_order_when_latency_ends() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    stage.proxy.latency(Duration::from_millis(50));
    send(&mut client, b"first ").await;
    stage.proxy.latency(Duration::ZERO);
    send(&mut client, b"second").await;
    arrives(&mut server, b"first second").await;
    let start = Instant::now();
    works(&mut client, &mut server).await;
    assert!(start.elapsed() < Duration::from_millis(100), "{:?}", start.elapsed());
}
