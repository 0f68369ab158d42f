//! All transports with unbound as the server.

use std::net::IpAddr;

use adit_dns::{RecordType, ResponseCode};
use adit_dns_client::Transport;
use adit_interop::unbound::UnboundServer;
use adit_net::names::LookupOrigin;

use crate::servers::{client, remote, vectors};

const NONE: LookupOrigin = LookupOrigin::Configuration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unbound_answers_over_all_transports() {
    let mut records = vec![
        "a.test. 300 A 192.0.2.7".to_owned(),
        "a.test. 300 AAAA 2001:db8::7".to_owned(),
        "a.test. 300 MX 10 mail.test.".to_owned(),
    ];
    for n in 0..12 {
        records.push(format!("long.test. TXT \"{n}{}\"", "x".repeat(200)));
    }
    let folder = vectors();
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    let server = UnboundServer::start(&records, &certificate, &key).unwrap();
    for (transport, at) in [
        (Transport::Udp, server.plain_addr()),
        (Transport::Tcp, server.plain_addr()),
        (Transport::Tls, server.tls_addr()),
        (Transport::Https, server.https_addr()),
    ] {
        let client = client([remote(transport, at)]);
        let mut found = client.resolve("a.test", 443, NONE).await.unwrap();
        found.sort();
        let ips: Vec<IpAddr> = found.iter().map(|addr| addr.ip()).collect();
        let wanted = ["192.0.2.7", "2001:db8::7"].map(|ip| ip.parse::<IpAddr>().unwrap());
        assert_eq!(ips, wanted, "{transport:?}");
        let mx = client
            .look_up("a.test", RecordType::MX, NONE)
            .await
            .unwrap();
        assert!(!mx.answer.is_negative() && mx.answer.addresses().is_empty());
        // 2,400 bytes: over TCP after a truncated answer.
        let long = client
            .look_up("long.test", RecordType::TXT, NONE)
            .await
            .unwrap();
        assert!(
            long.answer.memory() > 2400 && !long.answer.is_truncated(),
            "{transport:?}"
        );
        let none = client
            .look_up("none.test", RecordType::A, NONE)
            .await
            .unwrap();
        assert_eq!(none.answer.code(), ResponseCode::NXDomain);
        let counts = client.server_counts();
        assert_eq!(
            (counts[0].queries, counts[0].failures),
            (5, 0),
            "{transport:?}"
        );
    }
    assert!(server.log().contains("none.test. A IN"));
}
