//! Requests that were captured at one node are sent to another.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_fleet::FleetUser;
use adit_fleet_world::{CountingSink, FleetWorld, NodeOptions};
use adit_interop::store_server::StoreServer;
use adit_net::system::{ThreadRng, unix_now};
use adit_shadowsocks::tcp::client_codecs;
use adit_shadowsocks::{Key, KeyChain, Method};
use anyhow::{Context, Result, ensure};

use super::extent::FleetExtent;
use super::gate::Gate;
use crate::figures::{COUNT, as_float};
use crate::suite::users::seal_record;

/// Time that a request may take before the measurement fails.
const LIMIT: Duration = Duration::from_secs(20);
/// Number of requests that are sent before their arrival is awaited.
const TOGETHER: usize = 50;
const METHOD: Method = Method::Blake3Aes128Gcm;
/// Length of its keys, in bytes.
const KEY_LEN: usize = 16;

/// Which key a node has of its own.
#[derive(Clone, Copy, PartialEq)]
enum Identity {
    OfNode,
    Shared,
}

/// Measures how many replays a second node lets through, with a key for each node and with a shared one.
pub(super) fn measure_replays(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut gates = Vec::new();
    for (identity, what) in [(Identity::OfNode, "unique"), (Identity::Shared, "shared")] {
        let accepted = count_accepted(adit, extent.changes, identity).context(what)?;
        let name = format!(
            "{} requests replayed at another node, {what} keys: accepted",
            extent.changes
        );
        gates.push(Gate::new(name, COUNT, as_float(accepted), 0.0));
    }
    Ok(gates)
}

fn count_accepted(adit: &Path, count: usize, identity: Identity) -> Result<u64> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    let user = world.operator.add_user("ann")?;
    let suffix = match identity {
        Identity::OfNode => "",
        Identity::Shared => "&identity=shared",
    };
    let listener =
        format!("ss://{METHOD}@127.0.0.1:0?users=fleet&allow_private=127.0.0.0/8{suffix}");
    let options = NodeOptions {
        fleet: "shared_replay_filter = true\n".to_owned(),
        listeners: vec![listener],
        ..NodeOptions::default()
    };
    world.start_nodes(adit, 2, &options)?;
    world.wait_for_tables(LIMIT)?;
    let sink = CountingSink::start()?;
    let [first, second] = [0, 1].map(|at| -> Result<(SocketAddr, KeyChain)> {
        let node = world.nodes.get(at).context("a node")?;
        let addr = *node.addrs()?.get(1).context("a listener of Shadowsocks")?;
        let key = match identity {
            Identity::OfNode => world.operator.key().identity_psk(node.id, KEY_LEN),
            Identity::Shared => world.operator.key().shared_psk(KEY_LEN),
        };
        Ok((addr, key_chain(&key.context("a key")?, &user)?))
    });
    let (first, second) = (first?, second?);
    // The second node works.
    send_all(second.0, &[request(&second.1, &sink)?])?;
    wait_for(&sink, 1)?;
    let mut sent = 1;
    for part in (0..count).collect::<Vec<_>>().chunks(TOGETHER) {
        let requests = part.iter().map(|_| request(&first.1, &sink));
        let requests = requests.collect::<Result<Vec<_>>>()?;
        let _open = send_all(first.0, &requests)?;
        sent += u64::try_from(requests.len())?;
        wait_for(&sink, sent)?;
        let _replayed = send_all(second.0, &requests)?;
        sleep(Duration::from_millis(200));
    }
    sleep(Duration::from_secs(1));
    Ok(sink.received() - sent)
}

fn key_chain(identity: &str, user: &FleetUser) -> Result<KeyChain> {
    let own = user.psk(KEY_LEN).context("a key")?;
    let key = |text: &str| Key::parse(METHOD, text);
    Ok(KeyChain::new(vec![key(identity)?], key(&own)?)?)
}

/// Returns a request with one byte for the sink.
fn request(chain: &KeyChain, sink: &CountingSink) -> Result<Vec<u8>> {
    let target = sink.addr().to_string().parse().context("a target")?;
    let (mut seal, _) = client_codecs(chain, &target, Arc::new(unix_now()), &mut ThreadRng)?;
    seal_record(&mut seal, b"x")
}

/// Sends each request in a connection of its own; returns the connections, still open.
fn send_all(to: SocketAddr, requests: &[Vec<u8>]) -> Result<Vec<TcpStream>> {
    let send = |request: &Vec<u8>| {
        let mut stream = TcpStream::connect(to)?;
        stream.write_all(request)?;
        Ok(stream)
    };
    requests.iter().map(send).collect()
}

/// Waits until the sink has read this many bytes.
fn wait_for(sink: &CountingSink, bytes: u64) -> Result<()> {
    let start = Instant::now();
    while sink.received() < bytes {
        ensure!(
            start.elapsed() < LIMIT,
            "{} of {bytes} requests arrived",
            sink.received()
        );
        sleep(Duration::from_millis(2));
    }
    Ok(())
}
