//! Plain sessions with tokio_kcp and with KCP's own core in C, in both directions, in both of our
//! compatibility families, over good and bad paths. `cargo xtask install` installs both.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::time::Duration;

use adit_interop::bare_kcp::BareKcp;
use adit_interop::lossy_relay::{FaultRates, LossyRelay};
use adit_interop::{BytePattern, loopback_addr};
use adit_kcp::{KcpListener, KcpStream, Settings};
use adit_kcp_proto::{Compat, Config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const LIMIT: Duration = Duration::from_secs(30);
const LEN: usize = 300_000;
const FAULTS: FaultRates = FaultRates {
    lost: 80,
    doubled: 20,
    late: 50,
};
const MANNERS: [Compat; 2] = [Compat::Go, Compat::C];

fn settings(core: BareKcp, compat: Compat) -> Settings {
    Settings::new(Config {
        stream: core.is_stream(),
        compat,
        send_window: 256,
        recv_window: 256,
        ..Config::fast3()
    })
}

/// Their client and our server.
async fn ours_serves(core: BareKcp, compat: Compat, faults: Option<FaultRates>) {
    let mut listener = KcpListener::bind(loopback_addr(0), settings(core, compat)).unwrap();
    let addr = listener.local_addr().unwrap();
    let path = faults.map(|faults| LossyRelay::start(addr, faults, 3).unwrap());
    let to = path.as_ref().map_or(addr, LossyRelay::addr);
    let sent = spawn_blocking(move || core.run_sender(to, LEN));
    let serve = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buf = vec![0; 1 << 17];
        loop {
            let n = stream.read(&mut buf).await.unwrap();
            stream.write_all(&buf[..n]).await.unwrap();
        }
    };
    tokio::select! {
        sent = sent => sent.unwrap().unwrap_or_else(|why| panic!("{core:?}, {compat:?}: {why:#}")),
        () = serve => {}
    }
}

/// Our client and their server. Messages are returned as they were sent.
async fn theirs_serves(core: BareKcp, compat: Compat, faults: Option<FaultRates>) {
    let what = format!("{core:?}, {compat:?}");
    let server = core.start_echo_server().unwrap();
    let path = faults.map(|faults| LossyRelay::start(server.addr(), faults, 4).unwrap());
    let to = path
        .as_ref()
        .map_or_else(|| server.addr(), LossyRelay::addr);
    let mut stream = KcpStream::connect(to, settings(core, compat))
        .await
        .unwrap();
    let (pattern, mut buf) = (BytePattern::new(9).next_bytes(LEN), vec![0; 1 << 17]);
    if core.is_stream() {
        let (mut reader, mut writer) = stream.into_split();
        let mut got = vec![0; LEN];
        let read = timeout(LIMIT, reader.read_exact(&mut got));
        let (wrote, read) = tokio::join!(writer.write_all(&pattern), read);
        wrote.unwrap();
        read.unwrap_or_else(|_| panic!("{what}: late")).unwrap();
        assert!(got == pattern, "{what}: other bytes came back");
        return;
    }
    let mut rest = &pattern[..];
    for len in (0..).map(|n: usize| n * n * 37 % 50_000 + 1) {
        let Some((message, later)) = rest.split_at_checked(len) else {
            break;
        };
        rest = later;
        assert_eq!(stream.write(message).await.unwrap(), len);
        let n = timeout(LIMIT, stream.read(&mut buf)).await;
        let n = n.unwrap_or_else(|_| panic!("{what}: late")).unwrap();
        assert!(buf[..n] == *message, "{what}: of {len} bytes came {n}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ways_in_either_manner() {
    for core in BareKcp::ALL {
        for compat in MANNERS {
            ours_serves(core, compat, None).await;
            theirs_serves(core, compat, None).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_path_is_repaired() {
    for core in BareKcp::ALL {
        ours_serves(core, Compat::Go, Some(FAULTS)).await;
        theirs_serves(core, Compat::Go, Some(FAULTS)).await;
    }
}
