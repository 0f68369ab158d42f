//! One server for each transport.

use std::time::Duration;

use adit_dns::{Answer, RecordType};
use adit_dns_client::{DnsClient, LookupError, Transport};
use adit_net::names::LookupOrigin;
use tokio::time::Instant;

use crate::servers::{
    ADDRESS, answer, client, https, remote, same_port, tcp, tcp_on, tls, udp, udp_on,
};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(60);

async fn look_up(client: &DnsClient, name: &str) -> Result<Answer, LookupError> {
    let found = client
        .look_up(name, RecordType::A, LookupOrigin::Configuration)
        .await?;
    Ok(Answer::clone(&found.answer))
}

/// Asserts that several lookups at the same time find their addresses.
async fn find_at_the_same_time(client: &DnsClient, number: usize) {
    let mut lookups = tokio::task::JoinSet::new();
    for n in 0..number {
        let client = client.clone();
        lookups.spawn(async move { look_up(&client, &format!("n{n}.test")).await.unwrap() });
    }
    let mut found = 0;
    while let Some(answer) = lookups.join_next().await {
        assert_eq!(answer.unwrap().addresses(), [ADDRESS]);
        found += 1;
    }
    assert_eq!(found, number);
}

#[tokio::test]
async fn datagrams_are_sent_again_and_wrong_ones_ignored() {
    let (at, seen) = udp(|number, query| {
        // The first query is lost; the second one is answered after forged answers.
        if number == 1 {
            return Vec::new();
        }
        let good = answer(query);
        let mut other_id = good.clone();
        other_id[1] ^= 1;
        let mut other_name = good.clone();
        other_name[13] ^= 1;
        let cut = good[..good.len() - 1].to_vec();
        vec![other_id, other_name, cut, query.to_vec(), Vec::new(), good]
    })
    .await;
    let client = client([remote(Transport::Udp, at)]);
    let start = Instant::now();
    assert_eq!(
        look_up(&client, "a.test").await.unwrap().addresses(),
        [ADDRESS]
    );
    assert!(start.elapsed() >= Duration::from_millis(600));
    assert_eq!(seen.counts().1, 2);
    // From the cache.
    look_up(&client, "a.test").await.unwrap();
    assert_eq!(seen.counts().1, 2);
    assert_eq!(client.lookup_counts().hits, 1);
}

#[tokio::test]
async fn answers_that_do_not_fit_come_over_tcp() {
    let (socket, listener) = same_port().await;
    let (at, seen) = udp_on(socket, |_, query| {
        let mut cut = answer(query);
        cut[2] |= 2;
        vec![cut]
    });
    let (_, stream_seen) = tcp_on(listener, 0);
    let client = client([remote(Transport::Udp, at)]);
    assert_eq!(
        look_up(&client, "a.test").await.unwrap().addresses(),
        [ADDRESS]
    );
    assert_eq!(seen.counts().1, 1);
    assert_eq!(stream_seen.counts(), (1, 1));
}

#[tokio::test]
async fn attempts_to_guess_the_number_lead_to_tcp() {
    let (socket, listener) = same_port().await;
    let (at, _) = udp_on(socket, |_, query| {
        let forge = |n: u8| {
            let mut forged = answer(query);
            forged[0] ^= n;
            forged
        };
        (1..=20).map(forge).collect()
    });
    let (_, stream_seen) = tcp_on(listener, 0);
    let client = client([remote(Transport::Udp, at)]);
    assert_eq!(
        look_up(&client, "a.test").await.unwrap().addresses(),
        [ADDRESS]
    );
    assert_eq!(stream_seen.counts(), (1, 1));
}

#[tokio::test]
async fn queries_share_a_connection_and_answers_have_any_order() {
    let (at, seen) = tcp(5).await;
    let client = client([remote(Transport::Tcp, at)]);
    find_at_the_same_time(&client, 5).await;
    assert_eq!(seen.counts(), (1, 5));
    // The server has closed the connection.
    let more = tokio::time::timeout(Duration::from_millis(300), look_up(&client, "more.test"));
    assert!(more.await.is_err(), "the server waits for five queries");
    assert_eq!(seen.counts(), (2, 6));
}

#[tokio::test]
async fn a_connection_that_the_server_has_closed_is_opened_again() {
    let (at, seen) = tcp(1).await;
    let client = client([remote(Transport::Tcp, at)]);
    for n in 1..=5 {
        look_up(&client, &format!("n{n}.test")).await.unwrap();
        assert_eq!(seen.counts(), (n, n));
    }
}

#[tokio::test]
async fn tls_checks_certificates_and_pads_queries() {
    let (at, seen) = tls("server.pem", 0).await;
    let client_of = |server| client([server]);
    let good = client_of(remote(Transport::Tls, at));
    find_at_the_same_time(&good, 8).await;
    assert_eq!(seen.counts(), (1, 8));
    assert!(seen.lengths.lock().unwrap().iter().all(|len| *len == 128));

    let mut other = remote(Transport::Tls, at);
    other.server_name = Some("dns.example.test".to_owned());
    let why = look_up(&client_of(other), "a.test")
        .await
        .unwrap_err()
        .to_string();
    assert!(
        why.contains("no TLS") && why.contains("tls://localhost"),
        "{why}"
    );
    let (expired, _) = tls("expired.pem", 0).await;
    let why = look_up(&client_of(remote(Transport::Tls, expired)), "a.test")
        .await
        .unwrap_err();
    assert!(why.to_string().contains("xpired"), "{why}");
    // No TLS at all.
    let (plain, _) = tcp(0).await;
    assert!(
        look_up(&client_of(remote(Transport::Tls, plain)), "a.test")
            .await
            .is_err()
    );
}

#[tokio::test]
async fn https_has_both_versions_of_http() {
    for (protocols, connections) in [
        (&[&b"h2"[..], b"http/1.1"][..], 1),
        (&[b"http/1.1"], 4),
        (&[], 4),
    ] {
        let (at, seen) = https(protocols, LONG).await;
        let client = client([remote(Transport::Https, at)]);
        find_at_the_same_time(&client, 4).await;
        let (opened, queries) = seen.counts();
        assert!(opened <= connections, "{opened} connections");
        assert_eq!(queries, 4);
        for n in 0..4 {
            look_up(&client, &format!("later{n}.test")).await.unwrap();
        }
        assert_eq!(
            seen.counts(),
            (opened, 8),
            "idle connections are used again"
        );
        assert!(seen.lengths.lock().unwrap().iter().all(|len| *len == 128));
    }
}

#[tokio::test]
async fn https_is_connected_again_after_the_server_has_closed() {
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let (at, seen) = https(&[protocol], Duration::from_millis(200)).await;
        let client = client([remote(Transport::Https, at)]);
        for n in 1..=3 {
            look_up(&client, &format!("n{n}.test")).await.unwrap();
            assert_eq!(seen.counts(), (n, n));
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        assert_eq!(client.server_counts()[0].failures, 0);
    }
}

#[tokio::test]
async fn https_reports_what_is_wrong() {
    let (at, _) = https(&[b"h2"], LONG).await;
    for (path, part) in [
        ("/none", "404"),
        ("/text", "check the path"),
        ("/a b", "HTTP"),
    ] {
        let mut server = remote(Transport::Https, at);
        server.path = path.to_owned();
        let why = look_up(&client([server]), "a.test")
            .await
            .unwrap_err()
            .to_string();
        assert!(why.contains(part), "{why}");
        assert!(!why.contains(path), "the path may be a secret: {why}");
    }
}
