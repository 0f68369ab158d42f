//! Counters go on in the next process.

use std::path::Path;

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::Destination;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port};
use rustix::process::Signal;

use super::{Lineage, signal, wait_until};
use crate::reload::flows::EchoStream;
use crate::reload::world::{Server, Settings, request};
use crate::setup::{ALLOW, start};

/// The usage of users is counted on: that of the first process, including what its connections carry after the upgrade.
#[test]
fn usage_survives_an_upgrade() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let mut server = Server::start(&Settings::default());
    let clients = server.clients();
    let mut lineage = Lineage::of(server.adit.process());
    let mut open = EchoStream::open(clients[0].addr(), &target).unwrap();
    open.exchange(&[1; 1000]).unwrap();
    let usage = |server: &Server| -> (u64, u64) {
        let stats = server.request("GET /servers/ss/v1/users/anna HTTP/1.1\r\n");
        let number = |name: &str| -> u64 {
            let start = stats.split(&format!("\"{name}\":")).nth(1).unwrap_or("0");
            let digits: String = start.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        };
        (number("uplinkBytes"), number("tcpSessions"))
    };
    // The request of the echo is 5 bytes.
    assert_eq!(usage(&server), (1005, 1));
    for round in 1..=2 {
        lineage.upgrade_by_signal(server.adit.process());
        open.exchange(&[2; 1000]).unwrap();
        let mut fresh = EchoStream::open(clients[0].addr(), &target).unwrap();
        fresh.exchange(&[3; 1000]).unwrap();
        let expected = (1005 + round * 2005, 1 + round);
        wait_until(|| usage(&server) == expected, &format!("not {expected:?}"));
    }
    drop(open);
    for client in clients {
        client.stop().unwrap();
    }
    lineage.stop(server.adit.process());
}

/// The metrics of KCP, by name.
struct KcpMetrics(Vec<(String, u64)>);

impl KcpMetrics {
    fn read(admin: &Path) -> Self {
        let text = request(admin, "GET /metrics HTTP/1.1\r\n", "");
        let lines = text.lines().filter(|line| line.starts_with("adit_kcp_"));
        let metrics = lines.map(|line| {
            let (name, value) = line.split_once(' ').unwrap();
            (name.to_owned(), value.parse().unwrap())
        });
        Self(metrics.collect())
    }

    fn get(&self, name: &str) -> u64 {
        let name = format!("adit_kcp_{name}");
        let found = self.0.iter().find(|(known, _)| *known == name);
        found.unwrap().1
    }

    /// Asserts that no counter has decreased since `before`.
    #[track_caller]
    fn assert_grown(&self, before: &Self) {
        let counters = |of: &Self| {
            let each = of.0.iter().filter(|(name, _)| name.ends_with("_total"));
            each.cloned().collect::<Vec<_>>()
        };
        let (old, new) = (counters(before), counters(self));
        assert!(old.len() > 20 && old.len() == new.len(), "{old:?}");
        for ((name, old), (_, new)) in old.iter().zip(&new) {
            assert!(new >= old, "{name}: {old}, then {new}");
        }
    }
}

/// The counters of KCP never decrease, and count what both processes have carried: at the end they agree with those of
/// the clients.
#[test]
fn counters_of_kcp_survive_an_upgrade() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let folder = TempFolder::new("upgrade-kcp").unwrap();
    let keys = "key=word&mode=fast3&data=10&parity=3";
    let admin_of = |name: &str| folder.path().join(name);
    let run = |name: &str, urls: &[&str]| -> AditProcess {
        let admin = admin_of(name);
        start(&[&["run", "--admin", admin.to_str().unwrap()], urls].concat())
    };
    let listen = format!("socks5+kcp://127.0.0.1:{}?{ALLOW}&{keys}", free_port());
    let mut back = run("back", &[&listen]);
    let mut lineage = Lineage::of(back.process());
    let hop = format!("socks5+kcp://{}?{keys}", back.addr());
    let first = run("first", &["socks5://127.0.0.1:0", &hop]);
    let mut old = EchoStream::open(first.addr(), &target).unwrap();
    old.exchange(&[1; 20_000]).unwrap();

    let read = |name: &str| KcpMetrics::read(&admin_of(name));
    let mut last = read("back");
    assert!(last.get("bytes_received_total") > 20_000);
    for _ in 0..2 {
        lineage.upgrade_by_signal(back.process());
        for _ in 0..10 {
            old.exchange(&[2; 20_000]).unwrap();
            let now = read("back");
            now.assert_grown(&last);
            last = now;
        }
    }
    let second = run("second", &["socks5://127.0.0.1:0", &hop]);
    let mut new = EchoStream::open(second.addr(), &target).unwrap();
    new.exchange(&[3; 20_000]).unwrap();
    let agree = |back: &KcpMetrics| {
        let ends = [read("first"), read("second")];
        let sum = |name: &str| ends.iter().map(|end| end.get(name)).sum::<u64>();
        back.get("bytes_received_total") == sum("bytes_sent_total")
            && back.get("bytes_sent_total") == sum("bytes_received_total")
            && back.get("passive_opens_total") == sum("active_opens_total")
            && back.get("curr_estab") == sum("curr_estab")
    };
    // The first process reports what it counts every second.
    wait_until(|| agree(&read("back")), "the counters differ");
    let before = read("back");
    before.assert_grown(&last);
    assert_eq!(before.get("curr_estab"), 2);
    // Its sessions end with it.
    signal(lineage.ids[0], Signal::INT);
    back.process().wait(TEST_TIMEOUT).unwrap();
    let ended = || read("back").get("curr_estab") == 1;
    wait_until(ended, "the session of the first process is open");
    let after = read("back");
    after.assert_grown(&before);
    assert_eq!(after.get("passive_opens_total"), 2);
    assert_eq!(after.get("max_conn"), 2);
    drop((old, new));
    for client in [first, second] {
        client.stop().unwrap();
    }
    lineage.stop(back.process());
}
