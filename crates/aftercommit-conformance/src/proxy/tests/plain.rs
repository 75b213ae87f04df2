use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;

#[tokio::test]
async fn carries_bytes_both_ways_and_counts_them() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    works(&mut client, &mut server).await;
    let counts = soon(stage.proxy.wait_until(|counts| counts.to_client == 6)).await;
    assert_eq!((counts.connections, counts.open), (1, 1));
    assert_eq!((counts.to_server, counts.swallowed, counts.cuts), (8, 0, 0));
}

#[tokio::test]
async fn carries_more_than_fits_under_way() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    let sent: Vec<u8> = (0..20_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (mut got, ()) = tokio::join!(rest(&mut server), async {
        send(&mut client, &sent).await;
        client.shutdown().await.unwrap();
    });
    assert!(got == sent);
    got.truncate(10);
    send(&mut server, &got).await;
    arrives(&mut client, &got).await;
}

#[tokio::test]
async fn one_side_can_end_before_the_other() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    client.write_all(b"all I have").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut server).await, b"all I have");
    send(&mut server, b"and the answer").await;
    drop(server);
    assert_eq!(rest(&mut client).await, b"and the answer");
    drop(client);
    let counts = soon(stage.proxy.wait_until(|counts| counts.open == 0)).await;
    assert_eq!(counts.cuts, 0);
}

#[tokio::test]
async fn a_reset_goes_through_in_both_directions() {
    let stage = Stage::set().await;
    let (client, mut server) = stage.pair().await;
    client.set_zero_linger().unwrap();
    drop(client);
    is_reset(&mut server).await;

    let (mut client, server) = stage.pair().await;
    server.set_zero_linger().unwrap();
    drop(server);
    is_reset(&mut client).await;
}

#[tokio::test]
async fn without_a_server_clients_are_reset_until_it_is_back() {
    let stage = Stage::set().await;
    let place = stage.server.local_addr().unwrap();
    drop(stage.server);
    // The reset can come before the connection is reported.
    match TcpStream::connect(stage.proxy.addr()).await {
        Ok(mut client) => is_reset(&mut client).await,
        Err(e) => assert_eq!(e.kind(), ErrorKind::ConnectionReset),
    }

    let server = TcpListener::bind(place).await.unwrap();
    let stage = Stage { proxy: stage.proxy, server };
    let (mut client, mut server) = stage.pair().await;
    works(&mut client, &mut server).await;
}

#[tokio::test]
async fn dropping_it_resets_everybody_and_frees_the_port() {
    let stage = Stage::set().await;
    let (mut client, mut server) = stage.pair().await;
    works(&mut client, &mut server).await;
    let addr = stage.proxy.addr();
    drop(stage.proxy);
    is_reset(&mut client).await;
    is_reset(&mut server).await;
    TcpListener::bind(addr).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn works_while_the_tests_own_time_stands_still() {
    let stage = Stage::set().await;
    stage.proxy.latency(Duration::from_millis(20));
    let mut client = std::net::TcpStream::connect(stage.proxy.addr()).unwrap();
    let (server, _) = stage.server.accept().await.unwrap();
    let mut server = server.into_std().unwrap();
    server.set_nonblocking(false).unwrap();
    std::io::Write::write_all(&mut client, b"x").unwrap();
    std::io::Read::read_exact(&mut server, &mut [0]).unwrap();
}
