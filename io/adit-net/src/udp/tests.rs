//! Batches over loopback.

use std::future::poll_fn;

use super::*;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_shared_port_is_ours_alone() {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let ours = Udp::bind_shared(any, 3).unwrap();
    let at = ours[0].local_addr().unwrap();
    assert!(ours.iter().all(|socket| socket.local_addr().unwrap() == at));
    let taken = Udp::bind_shared(at, 3).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
}

async fn recv(socket: &Udp, want: usize) -> Vec<(Vec<u8>, SocketAddr)> {
    let mut got = Vec::new();
    while got.len() < want {
        poll_fn(|cx| socket.poll_recv(cx, &mut |bytes, from| got.push((bytes.to_vec(), from))))
            .await
            .unwrap();
    }
    got
}

#[tokio::test]
async fn both_families_through_one_socket() {
    let out = Udp::ephemeral().unwrap();
    let here = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    for payload in [&b""[..], b"x", &[7; 9000]] {
        out.try_send(payload, here.local_addr().unwrap()).unwrap();
        let (got, from) = recv(&here, 1).await.remove(0);
        assert_eq!(got, payload);
        here.try_send(&got, from).unwrap();
        let (got, from) = recv(&out, 1).await.remove(0);
        assert_eq!((from, &*got), (here.local_addr().unwrap(), payload));
    }
}

#[tokio::test]
async fn a_closed_port_does_not_break_the_socket() {
    let gone = Udp::bind("127.0.0.1:0".parse().unwrap())
        .unwrap()
        .local_addr()
        .unwrap();
    let out = Udp::ephemeral().unwrap();
    let here = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    for _ in 0..3 {
        out.try_send(b"lost", gone).unwrap();
    }
    out.try_send(b"found", here.local_addr().unwrap()).unwrap();
    assert_eq!(recv(&here, 1).await[0].0, b"found");
}

#[tokio::test]
async fn runs_keep_order_borders_and_peers() {
    let out = Udp::ephemeral().unwrap();
    let a = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let b = Udp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (to_a, to_b) = (a.local_addr().unwrap(), b.local_addr().unwrap());
    let sizes = [
        100, 100, 100, 40, 100, 0, 100, 200, 200, 1400, 1400, 1400, 1, 0, 0, 7,
    ];
    let mut sent = Vec::new();
    for (i, size) in sizes.into_iter().cycle().take(400).enumerate() {
        let datagram = vec![i as u8; size];
        out.queue(&datagram, to_a).unwrap();
        sent.push(datagram);
        if i % 97 == 0 {
            out.queue(b"other", to_b).unwrap();
        }
    }
    out.flush().unwrap();
    let got: Vec<_> = recv(&a, sent.len())
        .await
        .into_iter()
        .map(|(bytes, _)| bytes)
        .collect();
    assert!(got == sent, "every datagram as it was, in order");
    assert_eq!(recv(&b, 5).await.len(), 5);
}
