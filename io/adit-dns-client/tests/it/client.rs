//! Several servers, and lookups of many clients.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use adit_dns::{ClientQuery, RecordType, ResponseCode};
use adit_dns_client::{
    BoxDnsDatagrams, BoxDnsStream, BoxFuture, DirectPath, DnsClient, DnsPath, DnsServer,
    LookupError, Transport,
};
use adit_net::names::LookupOrigin;
use adit_wire::Target;
use tokio::net::UdpSocket;
use tokio::time::Instant;

use crate::servers::{ADDRESS, answer, client, remote, roots, udp};

const NONE: LookupOrigin = LookupOrigin::Configuration;

fn code(query: &[u8], code: ResponseCode) -> Vec<Vec<u8>> {
    vec![ClientQuery::parse(query).unwrap().error_reply(code)]
}

#[tokio::test]
async fn the_first_good_answer_counts() {
    let (fails, failed) = udp(|_, query| code(query, ResponseCode::ServFail)).await;
    let (refuses, _) = udp(|_, query| code(query, ResponseCode::Refused)).await;
    let (good, _) = udp(|_, query| vec![answer(query)]).await;
    let client = client([fails, refuses, good].map(|at| remote(Transport::Udp, at)));
    let start = Instant::now();
    let found = client.look_up("a.test", RecordType::A, NONE).await.unwrap();
    assert_eq!(found.answer.addresses(), [ADDRESS]);
    assert!(
        start.elapsed() < Duration::from_millis(500),
        "failures are not waited for"
    );
    let counts = client.server_counts();
    let failures: Vec<u64> = counts.iter().map(|server| server.failures).collect();
    assert_eq!(failures, [1, 1, 0]);
    // They work, but not for this name.
    assert!(
        counts
            .iter()
            .all(|server| server.queries == 1 && !server.paused)
    );
    client.look_up("b.test", RecordType::A, NONE).await.unwrap();
    assert_eq!(failed.counts().1, 2);
    assert!(counts[0].server.starts_with("udp://localhost:"));
}

#[tokio::test]
async fn a_silent_server_is_paused() {
    // A socket that is never read.
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (good, seen) = udp(|_, query| vec![answer(query)]).await;
    let silent_at = silent.local_addr().unwrap();
    let client = client([silent_at, good].map(|at| remote(Transport::Udp, at)));
    let start = Instant::now();
    client.look_up("a.test", RecordType::A, NONE).await.unwrap();
    let first = start.elapsed();
    assert!(
        first > Duration::from_millis(800) && first < Duration::from_secs(2),
        "{first:?}"
    );
    assert!(client.server_counts()[0].paused && !client.server_counts()[1].paused);
    let start = Instant::now();
    client.look_up("b.test", RecordType::A, NONE).await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(500));
    assert_eq!(seen.counts().1, 2);
    assert_eq!(client.server_counts()[0].queries, 1);
}

#[tokio::test]
async fn without_an_answer_each_server_has_a_reason() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let (fails, _) = udp(|_, query| code(query, ResponseCode::ServFail)).await;
    // No process listens there.
    let closed = {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        socket.local_addr().unwrap()
    };
    let servers = [silent.local_addr().unwrap(), fails, closed];
    let client = client(servers.map(|at| remote(Transport::Udp, at)));
    let start = Instant::now();
    let why = client
        .look_up("a.test", RecordType::A, NONE)
        .await
        .unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5));
    let text = why.to_string();
    for part in ["no answer within 4 s", "SERVFAIL", "no connection"] {
        assert!(text.contains(part), "{text}");
    }
    let io: io::Error = why.into();
    assert_eq!(io.kind(), io::ErrorKind::HostUnreachable);
}

/// Looks a name up that has to fail, and returns the reason.
async fn failure(client: &DnsClient, name: &str) -> String {
    let failed = client.look_up(name, RecordType::A, NONE).await;
    failed.unwrap_err().to_string()
}

#[tokio::test]
async fn a_failure_is_kept() {
    let (fails, failed) = udp(|_, query| code(query, ResponseCode::ServFail)).await;
    let (silent, sent) = udp(|_, _| Vec::new()).await;
    for (at, seen, each) in [(fails, failed, 1), (silent, sent, 3)] {
        let client = client([remote(Transport::Udp, at)]);
        let first = failure(&client, "a.test").await;
        let begin = Instant::now();
        for _ in 0..100 {
            assert_eq!(failure(&client, "a.test").await, first);
        }
        // A pause has at least a second.
        let pauses = usize::try_from(begin.elapsed().as_secs()).unwrap();
        let (_, queries) = seen.counts();
        assert!(queries <= each * (1 + pauses), "{first}: {queries} queries");
        let counts = client.lookup_counts();
        assert!(counts.lookups == 101 && counts.hits > 90, "{counts:?}");
        // Other types and names are not affected, and the same one is looked up again later.
        client
            .look_up("a.test", RecordType::MX, NONE)
            .await
            .unwrap_err();
        let (_, before) = seen.counts();
        assert!(before > queries);
        tokio::time::sleep(Duration::from_millis(1100)).await;
        failure(&client, "a.test").await;
        assert!(seen.counts().1 > before);
        client.clear_cache();
        let (_, before) = seen.counts();
        failure(&client, "a.test").await;
        assert!(seen.counts().1 > before);
    }
}

/// A path that fails until the test changes that.
#[derive(Default)]
struct BrokenPath {
    tries: AtomicUsize,
    works: AtomicBool,
    kind: Option<io::ErrorKind>,
}

impl DnsPath for BrokenPath {
    fn open_stream<'a>(&'a self, to: &'a Target) -> BoxFuture<'a, io::Result<BoxDnsStream>> {
        self.tries.fetch_add(1, Ordering::SeqCst);
        match self.works.load(Ordering::SeqCst) {
            true => DirectPath.open_stream(to),
            false => Box::pin(async {
                Err(self.kind.unwrap_or(io::ErrorKind::ConnectionRefused).into())
            }),
        }
    }

    fn open_datagrams<'a>(&'a self, to: &'a Target) -> BoxFuture<'a, io::Result<BoxDnsDatagrams>> {
        DirectPath.open_datagrams(to)
    }
}

#[tokio::test]
async fn a_server_without_a_path_is_tried_once_a_second() {
    let (good, _) = crate::servers::tcp(0).await;
    let start = |kind| {
        let path = Arc::new(BrokenPath {
            kind,
            ..BrokenPath::default()
        });
        let servers = vec![DnsServer::Remote(remote(Transport::Tcp, good))];
        let client = DnsClient::new(servers, path.clone(), None, &roots());
        (path, client)
    };
    let (path, client) = start(None);
    let begin = Instant::now();
    for n in 0..100 {
        let why = failure(&client, &format!("n{n}.test")).await;
        assert!(why.contains("no connection"), "{why}");
    }
    let seconds = usize::try_from(begin.elapsed().as_secs()).unwrap();
    let tries = path.tries.load(Ordering::SeqCst);
    assert!(tries <= 1 + seconds, "{tries} connections");
    // Once another name was found, this one has not to wait for the end of its pause of 2 s.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    failure(&client, "n0.test").await;
    path.works.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    let mut last = None;
    while begin.elapsed() < Duration::from_secs(20) && last.is_none() {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let other = client.look_up("other.test", RecordType::A, NONE).await;
        last = other.ok();
    }
    assert!(last.is_some());
    tokio::time::sleep(Duration::from_millis(100)).await;
    client
        .look_up("n0.test", RecordType::A, NONE)
        .await
        .unwrap();

    // A quota is that of one client.
    let (path, client) = start(Some(io::ErrorKind::QuotaExceeded));
    for n in 0..10 {
        failure(&client, &format!("n{n}.test")).await;
    }
    assert_eq!(path.tries.load(Ordering::SeqCst), 10);
}

#[tokio::test]
async fn equal_lookups_share_a_query_and_end_with_the_last_waiter() {
    let (at, seen) = udp(|_, query| {
        std::thread::sleep(Duration::from_millis(100));
        vec![answer(query)]
    })
    .await;
    let client = client([remote(Transport::Udp, at)]);
    let look_up = || client.look_up("a.test", RecordType::A, NONE);
    let (a, b, c) = tokio::join!(look_up(), look_up(), look_up());
    for found in [a, b, c] {
        assert_eq!(found.unwrap().answer.addresses(), [ADDRESS]);
    }
    assert_eq!(seen.counts().1, 1);
    let aborted = client.look_up("b.test", RecordType::A, NONE);
    assert!(
        tokio::time::timeout(Duration::from_millis(20), aborted)
            .await
            .is_err()
    );
    // A new one is not disturbed by the end of the other.
    client.look_up("b.test", RecordType::A, NONE).await.unwrap();
}

#[tokio::test]
async fn both_families_are_resolved() {
    let v6: IpAddr = "2001:db8::1".parse().unwrap();
    let (at, _) = udp(move |_, query| {
        let parsed = ClientQuery::parse(query).unwrap();
        match (parsed.name(), parsed.record_type()) {
            ("none.test", _) => code(query, ResponseCode::NXDomain),
            ("silent.test", RecordType::AAAA) => Vec::new(),
            ("half.test", RecordType::AAAA) => code(query, ResponseCode::ServFail),
            ("text.test", _) => code(query, ResponseCode::NoError),
            _ => vec![parsed.address_reply(&[ADDRESS, v6], Duration::from_secs(60))],
        }
    })
    .await;
    let client = client([remote(Transport::Udp, at)]);
    let mut found = client.resolve("a.test", 443, NONE).await.unwrap();
    found.sort();
    assert_eq!(found, [(ADDRESS, 443).into(), (v6, 443).into()]);
    let found = client.resolve("half.test", 1, NONE).await.unwrap();
    assert_eq!(found, [(ADDRESS, 1).into()]);
    let start = Instant::now();
    let found = client.resolve("silent.test", 1, NONE).await.unwrap();
    assert_eq!(found, [(ADDRESS, 1).into()]);
    assert!(start.elapsed() < Duration::from_secs(2));
    for (name, exists_now) in [("none.test", false), ("text.test", true)] {
        let why = client.resolve(name, 1, NONE).await.unwrap_err();
        let is_right = matches!(why, LookupError::NoAddress { exists, .. } if exists == exists_now);
        assert!(is_right, "{why:?}");
    }
    let negative = client
        .look_up("none.test", RecordType::A, NONE)
        .await
        .unwrap();
    assert!(negative.answer.is_negative());
    client.clear_cache();
    assert!(client.cached("a.test", RecordType::A).is_none());
}

#[tokio::test]
async fn one_client_leaves_lookups_for_others() {
    let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let client = Arc::new(client(
        [silent.local_addr().unwrap()].map(|at| remote(Transport::Udp, at)),
    ));
    let greedy = LookupOrigin::Client {
        user: 1,
        source: [192, 0, 2, 7].into(),
    };
    let mut lookups = tokio::task::JoinSet::new();
    for n in 0..300 {
        let client = client.clone();
        lookups.spawn(async move {
            let name = format!("n{n}.test");
            client.look_up(&name, RecordType::A, greedy).await.map(drop)
        });
    }
    let mut too_many = 0;
    while let Some(outcome) = lookups.join_next().await {
        too_many += usize::from(matches!(outcome.unwrap(), Err(LookupError::TooMany)));
    }
    assert!((44..300).contains(&too_many), "{too_many} refused");
    assert!(client.server_counts()[0].queries < 200);
}

#[tokio::test]
async fn the_system_is_a_server_of_the_path() {
    let client = DnsClient::new(
        vec![DnsServer::System],
        Arc::new(DirectPath),
        None,
        &roots(),
    );
    let why = client
        .look_up("a.test", RecordType::A, NONE)
        .await
        .unwrap_err();
    assert!(
        why.to_string()
            .starts_with("no DNS server answered: system: "),
        "{why}"
    );
    assert_eq!(
        client
            .look_up("a..b", RecordType::A, NONE)
            .await
            .unwrap_err()
            .to_string(),
        "a label of the name is empty or longer than 63 bytes"
    );
}
