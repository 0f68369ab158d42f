//! Sessions with kcp-go, in both directions: every cipher, with and without correction, streams and
//! messages, over good and bad paths. The peer is a program that `cargo xtask install` builds.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
use adit_fec::CodeMatrix;
use adit_interop::lossy_relay::{FaultRates, LossyRelay};
use adit_interop::{BytePattern, kcp_go, loopback_addr};
use adit_kcp::{Fec, KcpListener, KcpStream, Settings};
use adit_kcp_proto::Config;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

const SHARDS: [(usize, usize); 3] = [(0, 0), (10, 3), (3, 1)];
const LIMIT: Duration = Duration::from_secs(30);

/// The same, for either program.
#[derive(Debug, Clone, Copy)]
struct Case {
    kind: PacketKind,
    shards: (usize, usize),
    stream: bool,
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        PacketKind::ALL.into_iter().flat_map(|kind| {
            SHARDS.map(|shards| Self {
                kind,
                shards,
                stream: true,
            })
        })
    }

    fn settings(self) -> Settings {
        let key = || PacketKey::new(self.kind, PacketCheck::Crc32, b"between two").unwrap();
        let (data, parity) = self.shards;
        let mut settings = Settings::new(Config {
            stream: self.stream,
            send_window: 1024,
            recv_window: 1024,
            ..Config::fast3()
        });
        settings.mtu = 1350;
        settings.key = (self.kind != PacketKind::Null).then(|| Arc::new(key()));
        settings.fec = (data > 0).then_some(Fec {
            data,
            parity,
            matrix: CodeMatrix::Vandermonde,
        });
        settings
    }

    /// Bytes of a segment's data.
    fn segment(self) -> usize {
        let crypt = if self.kind == PacketKind::Null { 0 } else { 20 };
        let fec = if self.shards.0 > 0 { 8 } else { 0 };
        1350 - crypt - fec - 24
    }

    fn options(self) -> Vec<String> {
        let (data, parity) = self.shards;
        let (crypt, message) = (self.kind.name(), !self.stream);
        let text = format!(
            "-key=between two|-crypt={crypt}|-ds={data}|-ps={parity}|-message={message}|-life=60"
        );
        text.split('|').map(str::to_owned).collect()
    }
}

/// Their client and our server, with `faults` on the path.
async fn ours_serves(case: Case, len: usize, faults: Option<FaultRates>) {
    let mut listener = KcpListener::bind(loopback_addr(0), case.settings()).unwrap();
    let addr = listener.local_addr().unwrap();
    let path = faults.map(|faults| LossyRelay::start(addr, faults, 3).unwrap());
    let to = path.as_ref().map_or(addr, LossyRelay::addr);
    let sent = spawn_blocking(move || {
        let options = case.options();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        kcp_go::run_sender(to, len, &options)
    });
    let serve = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut buf = vec![0; 1 << 16];
        loop {
            let n = stream.read(&mut buf).await.unwrap();
            stream.write_all(&buf[..n]).await.unwrap();
        }
    };
    tokio::select! {
        sent = sent => sent.unwrap().unwrap_or_else(|why| panic!("{case:?}: {why:#}")),
        () = serve => {}
    }
}

/// Our client and their server.
async fn theirs_serves(case: Case, len: usize, faults: Option<FaultRates>) {
    let options = case.options();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let server = kcp_go::start_echo_server(&options).unwrap();
    let path = faults.map(|faults| LossyRelay::start(server.addr(), faults, 4).unwrap());
    let to: SocketAddr = path
        .as_ref()
        .map_or_else(|| server.addr(), LossyRelay::addr);
    let mut stream = KcpStream::connect(to, case.settings()).await.unwrap();
    let pattern = BytePattern::new(9).next_bytes(len);
    if case.stream {
        let (mut reader, mut writer) = stream.into_split();
        let mut got = vec![0; len];
        let read = timeout(LIMIT, reader.read_exact(&mut got));
        let write = async {
            writer.write_all(&pattern).await?;
            // kcp-go takes our closing message for a window report, and continues.
            writer.shutdown().await
        };
        let (wrote, read) = tokio::join!(write, read);
        wrote.unwrap();
        read.unwrap_or_else(|_| panic!("{case:?}: late")).unwrap();
        assert!(got == pattern, "{case:?}: other bytes came back");
        return;
    }
    let (mut buf, mut rest) = (vec![0; 1 << 16], &pattern[..]);
    for len in (0..).map(|n: usize| n * n * 37 % 50_000 + 1) {
        let Some((message, later)) = rest.split_at_checked(len) else {
            break;
        };
        rest = later;
        assert_eq!(stream.write(message).await.unwrap(), len);
        // kcp-go makes a message of each segment that it writes, but reads whole ones: each that we
        // sent is returned in full parts and a shorter one.
        for piece in message.chunks(case.segment()) {
            let n = timeout(LIMIT, stream.read(&mut buf)).await;
            let n = n.unwrap_or_else(|_| panic!("{case:?}: late")).unwrap();
            assert!(buf[..n] == *piece, "{case:?}: of {len} bytes came {n}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cipher_with_their_client() {
    for case in Case::all() {
        ours_serves(case, 100_000, None).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cipher_with_their_server() {
    for case in Case::all() {
        theirs_serves(case, 100_000, None).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_keep_their_boundaries() {
    for (kind, shards) in [(PacketKind::Aes, (10, 3)), (PacketKind::Null, (0, 0))] {
        let case = Case {
            kind,
            shards,
            stream: false,
        };
        ours_serves(case, 400_000, None).await;
        theirs_serves(case, 400_000, None).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_go_beside_the_stream() {
    for kind in PacketKind::ALL {
        let case = Case {
            kind,
            shards: (10, 3),
            stream: true,
        };
        let options = case.options();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let server = kcp_go::start_echo_server(&options).unwrap();
        let mut stream = KcpStream::connect(server.addr(), case.settings())
            .await
            .unwrap();
        let mut back = stream.oob_receiver();
        stream.write_all(b"!").await.unwrap();
        timeout(LIMIT, stream.read_u8()).await.unwrap().unwrap();
        let longest = stream.oob_max_size();
        assert!((1_310..1_340).contains(&longest), "{case:?}: {longest}");
        for len in [0, 1, 24, 700, longest] {
            let datagram = BytePattern::new(2).next_bytes(len);
            let came = async {
                loop {
                    stream.send_oob(&datagram).unwrap();
                    let soon = timeout(Duration::from_millis(50), back.recv()).await;
                    if soon.is_ok_and(|got| *got.unwrap() == *datagram) {
                        break;
                    }
                }
            };
            let came = timeout(LIMIT, came).await;
            came.unwrap_or_else(|_| panic!("{case:?}: {len} bytes never came"));
        }
        drop(stream);
        let mut listener = KcpListener::bind(loopback_addr(0), case.settings()).unwrap();
        let addr = listener.local_addr().unwrap();
        let options = case.options();
        let sent = spawn_blocking(move || {
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            kcp_go::run_datagram_client(addr, &options)
        });
        let serve = async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut came = stream.oob_receiver();
            let byte = stream.read_u8().await.unwrap();
            stream.write_all(&[byte]).await.unwrap();
            while let Some(datagram) = came.recv().await {
                stream.send_oob(&datagram).unwrap();
            }
        };
        tokio::select! {
            sent = sent => sent.unwrap().unwrap_or_else(|why| panic!("{case:?}: {why:#}")),
            () = serve => panic!("{case:?}: the session has ended"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_come_several_times() {
    for (kind, shards) in [(PacketKind::Aes, (10, 3)), (PacketKind::Null, (0, 0))] {
        let case = Case {
            kind,
            shards,
            stream: true,
        };
        let mut options = case.options();
        options.push("-dup=2".to_owned());
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let server = kcp_go::start_echo_server(&options).unwrap();
        let settings = case.settings();
        let counters = Arc::clone(&settings.counters);
        let stream = KcpStream::connect(server.addr(), settings).await.unwrap();
        stream.set_copies(3).unwrap();
        let pattern = BytePattern::new(9).next_bytes(300_000);
        let mut got = vec![0; pattern.len()];
        let (mut reader, mut writer) = stream.into_split();
        let both =
            async { tokio::try_join!(writer.write_all(&pattern), reader.read_exact(&mut got)) };
        timeout(LIMIT, both).await.unwrap().unwrap();
        assert!(got == pattern, "{case:?}: other bytes came back");
        let counts = counters.counts();
        assert!(counts.out_pkts > 3 * counts.out_segs / 2, "{counts:?}");
        assert!(counts.repeat_segs > 300, "{counts:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_path_is_repaired() {
    let faults = Some(FaultRates {
        lost: 80,
        doubled: 20,
        late: 50,
    });
    for (kind, shards) in [(PacketKind::Salsa20, (10, 3)), (PacketKind::Aes128, (0, 0))] {
        let case = Case {
            kind,
            shards,
            stream: true,
        };
        ours_serves(case, 1 << 20, faults).await;
        theirs_serves(case, 1 << 20, faults).await;
    }
}
