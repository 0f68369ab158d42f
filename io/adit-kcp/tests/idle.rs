//! A thousand idle sessions: their memory, CPU time and number of tasks.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_fec::CodeMatrix;
use adit_interop::{TEST_TIMEOUT, kcp_go, loopback_addr};
use adit_kcp::{Fec, KcpListener, Settings};
use adit_kcp_proto::Config;
use tokio::io::AsyncReadExt;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

const SESSIONS: usize = 1000;

/// Returns the resident memory of this process in bytes.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Returns the CPU time of this process, in ticks of 10 ms.
fn ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split(' ');
    fields
        .skip(12)
        .take(2)
        .map(|n| n.parse::<u64>().unwrap())
        .sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_at_rest_cost_little() {
    // One after the other: both measure the whole process.
    at_rest((0, 0), 6 << 10).await;
    at_rest((10, 3), 12 << 10).await;
}

/// Maximum number of bytes per session, including the peak of its start: an allocator keeps that
/// memory for the next ones.
async fn at_rest((data, parity): (usize, usize), most: usize) {
    let key = PacketKey::new(PacketKind::Aes128Gcm, PacketCheck::Crc32, b"idle").unwrap();
    let mut settings = Settings::new(Config::fast3());
    settings.key = Some(Arc::new(key));
    settings.fec = (data > 0).then_some(Fec {
        data,
        parity,
        matrix: CodeMatrix::Vandermonde,
    });
    let mut listener = KcpListener::bind(loopback_addr(0), settings).unwrap();
    let addr = listener.local_addr().unwrap();
    let peers = spawn_blocking(move || {
        let shards = [format!("-ds={data}"), format!("-ps={parity}")];
        let [data, parity] = shards.each_ref().map(String::as_str);
        let options = ["-key=idle", "-crypt=aes-128-gcm", data, parity];
        kcp_go::start_idle_sessions(addr, SESSIONS, &options).unwrap()
    });
    let mut streams = Vec::with_capacity(SESSIONS);
    let (mut before, mut tasks) = (0, 0);
    for n in 0..SESSIONS {
        // Without its peer the test fails, instead of waiting.
        let accepted = timeout(TEST_TIMEOUT, listener.accept()).await.unwrap();
        let (mut stream, _) = accepted.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 1);
        streams.push(stream);
        // The first ones warm up pools and tables.
        if n == SESSIONS / 10 {
            (before, tasks) = (resident(), Handle::current().metrics().num_alive_tasks());
        }
    }
    let peers = peers.await.unwrap();
    sleep(Duration::from_millis(3500)).await;
    let counted = SESSIONS - SESSIONS / 10 - 1;
    let each = resident().saturating_sub(before) / counted;
    let begun = ticks();
    sleep(Duration::from_secs(3)).await;
    let spent = ticks() - begun;
    println!(
        "{data}+{parity}: {each} bytes and {spent} ticks of 10 ms in 3 s for {SESSIONS} sessions"
    );
    assert!(each < most, "{each} bytes for each session");
    assert!(spent <= 3, "{spent} ticks in three seconds");
    assert_eq!(Handle::current().metrics().num_alive_tasks(), tasks);
    drop((streams, listener));
    // Each sends its closing message a few times, which kcp-go does not answer.
    for _ in 0..100 {
        if Handle::current().metrics().num_alive_tasks() == 0 {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
    drop(peers);
}
