//! Listeners and hops with SIP003 plugins.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::plugin::{PluginScript, is_running, retry_until_success};
use adit_interop::shadowsocks::{AES_256, percent_encode};
use adit_interop::socks_client::{Destination, UdpAssociation};
use adit_interop::traffic;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use rustix::process::Signal;

use super::{Lineage, is_alive, signal, wait_until};
use crate::reload::flows::{Connections, EchoStream};
use crate::setup::{ALLOW, bin, start};

/// Number of upgrades, and of new connections per second.
const UPGRADES: usize = 5;
const RATE: u32 = 40;
/// Time after which no process of a plugin may remain.
const NO_ORPHAN: Duration = Duration::from_secs(10);

/// A server of adit with a file, behind a plugin.
struct Behind {
    adit: AditProcess,
    lineage: Lineage,
    folder: TempFolder,
    /// Records the process of the plugin, and becomes it.
    plugin: PluginScript,
    port: u16,
}

impl Behind {
    fn start(program: &str, options: &str) -> Self {
        Self::start_with(program, options, "tcp_only")
    }

    fn start_with(program: &str, options: &str, mode: &str) -> Self {
        let plugin = PluginScript::new("plugin", &format!("note $$\nexec {program}\n")).unwrap();
        let folder = TempFolder::new("upgrade-plugin").unwrap();
        let port = free_port();
        let text = Self::text(&plugin, options, port);
        let text = text.replace("?plugin=", &format!("?plugin_mode={mode}&plugin="));
        let file = folder.write_file("adit.toml", text).unwrap();
        let mut adit = start(&["run", "-c", file.to_str().unwrap()]);
        let lineage = Lineage::of(adit.process());
        Self {
            adit,
            lineage,
            folder,
            plugin,
            port,
        }
    }

    fn text(plugin: &PluginScript, options: &str, port: u16) -> String {
        let plugin = format!("{};{options}", plugin.path().display());
        let url = AES_256.url(loopback_addr(port));
        let plugin = percent_encode(&plugin);
        format!("[route.a]\nlisten = \"{url}?plugin={plugin}&{ALLOW}\"\n")
    }

    fn write(&self, text: &str) {
        self.folder.write_file("adit.toml", text).unwrap();
    }

    fn addr(&self) -> SocketAddr {
        loopback_addr(self.port)
    }

    /// Starts a client with the counterpart of the plugin.
    fn client(&self, plugin: &str) -> AditProcess {
        let hop = format!(
            "{}?plugin={}",
            AES_256.url(self.addr()),
            percent_encode(plugin)
        );
        start(&["run", "socks5://127.0.0.1:0", &hop])
    }

    /// Returns the process ID of the plugin, which has been started `starts` times.
    #[track_caller]
    fn plugin_id(&self, starts: usize) -> u32 {
        let ids = self.plugin.wait_for_pids(starts).unwrap();
        assert_eq!(ids.len(), starts, "{ids:?}");
        ids[starts - 1]
    }

    #[track_caller]
    fn upgrade(&mut self) {
        self.lineage.upgrade_by_signal(self.adit.process());
    }

    /// Ends the first process, while its successors continue.
    #[track_caller]
    fn end_first(&mut self) {
        signal(self.lineage.ids[0], Signal::INT);
        self.adit.process().wait(TEST_TIMEOUT).unwrap();
    }

    /// Ends the newest process, and checks that the plugin ends with it.
    fn stop(mut self) {
        self.lineage.stop(self.adit.process());
        self.plugin.wait_until_gone(1, NO_ORPHAN).unwrap();
        let public = loopback_addr(self.port);
        assert!(traffic::connect_directly(public).is_err());
    }
}

/// Waits until a client reaches the origin.
#[track_caller]
fn wait_for_echo(client: &AditProcess, target: &Destination) {
    retry_until_success(|| EchoStream::open(client.addr(), target)?.exchange(b"again")).unwrap();
}

/// The process of the plugin continues, and with it every connection: none is refused or reset. The last process
/// restarts it when it ends, and ends it.
#[track_caller]
fn upgrades_behind(server: [&str; 2], client: &str) {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let mut back = Behind::start(server[0], server[1]);
    let plugin = back.plugin_id(1);
    let clients = [back.client(client), back.client(client)];
    let entries = clients.each_ref().map(AditProcess::addr);
    let mut open = EchoStream::open(entries[0], &target).unwrap();
    // Datagrams do not pass through the plugin.
    let association = UdpAssociation::open(entries[0], None).unwrap();
    let ping = || {
        association.send_to(&target, b"datagram").unwrap();
        association.recv_within(TEST_TIMEOUT).unwrap();
    };
    ping();
    let load = Connections::start(&entries, &target, RATE);
    let since = Instant::now();
    for round in 1..=UPGRADES {
        back.upgrade();
        open.exchange(format!("round {round}").as_bytes()).unwrap();
        ping();
        std::thread::sleep(Duration::from_millis(200));
    }
    let took = since.elapsed();
    load.stop().assert_lossless(took, RATE);
    assert_eq!(back.plugin_id(1), plugin);
    assert!(is_alive(back.lineage.ids[0]), "a stream is open");
    back.end_first();
    let between = back.lineage.ids[1..UPGRADES].to_vec();
    let ended = || between.iter().all(|id| !is_alive(*id));
    wait_until(ended, "a process has nothing open and is still there");
    assert!(is_running(plugin), "its parent has ended");
    wait_for_echo(&clients[1], &target);
    assert_eq!(back.plugin_id(1), plugin);

    signal(plugin, Signal::KILL);
    let next = back.plugin_id(2);
    wait_for_echo(&clients[1], &target);
    back.upgrade();
    wait_for_echo(&clients[1], &target);
    assert_eq!(back.plugin_id(2), next);
    drop((open, association));
    for client in clients {
        client.stop().unwrap();
    }
    back.stop();
}

#[test]
fn simple_obfs_continues() {
    upgrades_behind(
        ["obfs-server", "obfs=http"],
        "obfs-local;obfs=http;obfs-host=a.example",
    );
}

#[test]
fn v2ray_plugin_continues() {
    upgrades_behind(["ss-v2ray-plugin", "server"], "ss-v2ray-plugin");
}

#[test]
fn adit_as_a_plugin_continues() {
    let adit = bin();
    let adit = adit.display();
    upgrades_behind(
        [&format!("'{adit}'"), "server"],
        &format!("{adit};obfs=plain"),
    );
}

/// Datagrams that pass through a plugin continue too.
#[test]
fn a_plugin_for_datagrams_continues() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let ends = "\"tcp+udp://$SS_REMOTE_HOST:$SS_REMOTE_PORT/$SS_LOCAL_HOST:$SS_LOCAL_PORT\"";
    let program = format!("'{}' run {ends}", bin().display());
    let mut back = Behind::start_with(&program, "", "tcp_and_udp");
    let plugin = back.plugin_id(1);
    // The plugin disguises nothing.
    let client = start(&["run", "socks5://127.0.0.1:0", &AES_256.url(back.addr())]);
    let open = || UdpAssociation::open(client.addr(), None).unwrap();
    let ping = |association: &UdpAssociation| {
        association.send_to(&target, b"datagram").unwrap();
        let (_, back) = association.recv_within(TEST_TIMEOUT).unwrap();
        assert_eq!(back, b"datagram");
    };
    let old = open();
    ping(&old);
    back.upgrade();
    let new = open();
    for association in [&old, &new, &old] {
        ping(association);
    }
    assert!(is_alive(back.lineage.ids[0]), "an association is open");
    back.end_first();
    for association in [&new, &old] {
        ping(association);
    }
    wait_for_echo(&client, &target);
    assert_eq!(back.plugin_id(1), plugin);
    drop((old, new));
    client.stop().unwrap();
    back.stop();
}

/// A process that cannot take over leaves the plugin as it is; the running one restarts it when it ends.
#[test]
fn a_failed_upgrade_changes_no_plugin() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let mut back = Behind::start("obfs-server", "obfs=http");
    let client = back.client("obfs-local;obfs=http;obfs-host=a.example");
    wait_for_echo(&client, &target);
    let plugin = back.plugin_id(1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = Behind::text(&back.plugin, "obfs=http", back.port);
    let occupied = format!(
        "{text}[route.b]\nlisten = \"mixed://{}\"\n",
        taken.local_addr().unwrap()
    );
    // The plugin has been handed over when the address turns out to be occupied.
    for (count, wrong) in [occupied, text.replace("ss://", "sz://")]
        .iter()
        .enumerate()
    {
        back.write(wrong);
        let process = back.adit.process();
        process.send_signal(Signal::USR2).unwrap();
        process
            .wait_lines("not upgraded", count + 1, TEST_TIMEOUT)
            .unwrap();
        wait_for_echo(&client, &target);
        assert_eq!(back.plugin_id(1), plugin);
    }
    signal(plugin, Signal::KILL);
    let next = back.plugin_id(2);
    wait_for_echo(&client, &target);
    back.write(&text);
    back.upgrade();
    wait_for_echo(&client, &target);
    assert_eq!(back.plugin_id(2), next);
    client.stop().unwrap();
    back.stop();
}

/// An upgrade does not end a plugin that is being restarted and is not ready yet: it waits for it, and hands it over.
#[test]
fn a_plugin_that_is_being_restarted_continues() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let slow_restart =
        "sh -c 'test $(wc -l < \"$0\") = 1 || sleep 1; exec obfs-server' \"$HERE/pids\"";
    let mut back = Behind::start(slow_restart, "obfs=http");
    let client = back.client("obfs-local;obfs=http;obfs-host=a.example");
    wait_for_echo(&client, &target);
    signal(back.plugin_id(1), Signal::KILL);
    let second = back.plugin_id(2);
    back.upgrade();
    wait_for_echo(&client, &target);
    assert_eq!(back.plugin_id(2), second);
    client.stop().unwrap();
    back.stop();
}

/// Other options restart the plugin, and a plugin that no listener has any more ends, as with a reload.
#[test]
fn a_changed_plugin_is_restarted() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let mut back = Behind::start("obfs-server", "obfs=http");
    let first = back.plugin_id(1);
    back.write(&Behind::text(&back.plugin, "obfs=tls", back.port));
    back.upgrade();
    let second = back.plugin_id(2);
    assert!(!is_running(first));
    let client = back.client("obfs-local;obfs=tls;obfs-host=a.example");
    wait_for_echo(&client, &target);
    client.stop().unwrap();

    let port = free_port();
    back.write(&Behind::text(&back.plugin, "obfs=tls", port));
    let old = back.addr();
    back.port = port;
    back.upgrade();
    let third = back.plugin_id(3);
    let gone = || !is_running(second) && traffic::connect_directly(old).is_err();
    wait_until(gone, "the plugin of the former address is still there");
    let client = back.client("obfs-local;obfs=tls;obfs-host=a.example");
    wait_for_echo(&client, &target);
    assert!(is_running(third));
    client.stop().unwrap();
    back.stop();
}

/// The plugin ends with the process that has taken it over, whatever the reason.
#[test]
fn a_plugin_dies_with_the_new_process() {
    let mut back = Behind::start("obfs-server", "obfs=http");
    back.upgrade();
    back.adit.process().wait(TEST_TIMEOUT).unwrap();
    assert!(is_running(back.plugin_id(1)));
    signal(back.lineage.current(), Signal::KILL);
    back.plugin.wait_until_gone(1, NO_ORPHAN).unwrap();
}

/// Each process has plugins of its own before its hops. That of the first process lives until this ends.
#[test]
fn a_plugin_of_a_hop_belongs_to_one_process() {
    let origin = OriginServer::start().unwrap();
    let target = Destination::Addr(origin.addr());
    let back = Behind::start("obfs-server", "obfs=http");
    let plugin = PluginScript::new("plugin", "note $$\nexec obfs-local\n").unwrap();
    let with = |path: &Path| format!("{};obfs=http;obfs-host=a.example", path.display());
    let mut front = back.client(&with(plugin.path()));
    let mut lineage = Lineage::of(front.process());
    let mut old = EchoStream::open(front.addr(), &target).unwrap();
    old.exchange(b"before").unwrap();
    lineage.upgrade_by_signal(front.process());
    let ids = plugin.wait_for_pids(2).unwrap();
    old.exchange(b"after").unwrap();
    let mut new = EchoStream::open(front.addr(), &target).unwrap();
    new.exchange(b"new").unwrap();
    drop(old);
    front.process().wait(TEST_TIMEOUT).unwrap();
    wait_until(|| !is_running(ids[0]), "the plugin of the first process");
    new.exchange(b"still open").unwrap();
    assert!(is_running(ids[1]));
    drop(new);
    lineage.stop(front.process());
    plugin.wait_until_gone(2, NO_ORPHAN).unwrap();
    back.stop();
}
