//! The time from the change of a user to its effect at the nodes, beside traffic of other users.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use adit_fleet::FleetUser;
use adit_fleet_world::{CountingSink, FleetWorld, NodeOptions, Upload, open_stream};
use adit_interop::free_port;
use adit_interop::store_server::StoreServer;
use adit_link::{FAR, LinkPath, NamespaceLink};
use anyhow::{Context, Result, ensure};

use super::extent::FleetExtent;
use super::gate::Gate;
use crate::figures::{COUNT, DURATION, as_float};

/// Time that a change may take before the measurement fails.
const LIMIT: Duration = Duration::from_secs(20);
/// Time between two attempts of a user to log in.
pub(super) const ATTEMPTS: Duration = Duration::from_millis(10);
/// Time to a far store and back.
const FAR_AWAY: Duration = Duration::from_millis(150);
/// Bytes per second of each of the other users.
const OTHER_RATE: u64 = 256 << 10;

/// A new user at one node: the login, and the wait for the end of the session.
struct Watch {
    user: FleetUser,
    thread: JoinHandle<Result<(Duration, Instant)>>,
}

/// Measures changes with a store on this machine.
pub(super) fn measure_changes(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let mut world = FleetWorld::new(StoreServer::start()?)?;
    world.start_nodes(adit, extent.nodes, &NodeOptions::default())?;
    time_changes(&mut world, extent, "", 300.0)
}

/// Measures changes with a store that is 150 ms away, there and back.
pub(super) fn measure_far_changes(adit: &Path, extent: &FleetExtent) -> Result<Vec<Gate>> {
    let link = NamespaceLink::start(LinkPath::new(FAR_AWAY, 0), 1)?;
    let port = free_port();
    let options = ["--save", "", "--appendonly", "no"];
    let store = link
        .far()
        .run_inside(|| StoreServer::start_with(&options, port))?;
    let mut world = FleetWorld::new(store)?;
    let url = format!("valkey://{FAR}:{port}?plain=yes");
    link.near().run_inside(|| {
        for _ in 0..extent.nodes {
            world.start_node(adit, Some(&url), &NodeOptions::default())?;
        }
        let few = FleetExtent {
            changes: extent.changes.min(200),
            ..*extent
        };
        time_changes(&mut world, &few, ", the store 150 ms away", 1000.0)
    })
}

/// Adds users one after the other, each of whom logs in at one node as soon as it is possible, and removes them again.
fn time_changes(
    world: &mut FleetWorld,
    extent: &FleetExtent,
    place: &str,
    bound: f64,
) -> Result<Vec<Gate>> {
    let names = (0..extent.nodes).map(|n| format!("other-{n}"));
    let others = world.operator.add_users(names, |_| {})?;
    world.wait_for_tables(LIMIT)?;
    let sink = CountingSink::start()?;
    let addrs: Vec<SocketAddr> = world
        .nodes
        .iter()
        .map(adit_fleet_world::FleetNode::addr)
        .collect();
    let upload = |(addr, user): (&SocketAddr, &FleetUser)| {
        Upload::start(*addr, user, sink.addr(), OTHER_RATE)
    };
    let uploads: Vec<Upload> = addrs.iter().zip(&others).map(upload).collect();
    let gap = Duration::from_secs(1) / extent.changes_per_second;
    let mut watches = Vec::new();
    let begin = Instant::now();
    for (number, addr) in (0..extent.changes).zip(addrs.iter().cycle()) {
        sleep((gap * u32::try_from(number)?).saturating_sub(begin.elapsed()));
        let (user, written) = {
            let user = world.operator.add_user(&format!("new-{number}"))?;
            (user, Instant::now())
        };
        let (own, addr, to) = (user.clone(), *addr, sink.addr());
        let thread = thread::Builder::new().stack_size(256 << 10);
        let thread = thread.spawn(move || watch_session(addr, &own, to, written))?;
        watches.push(Watch { user, thread });
    }
    sleep(Duration::from_secs(1));
    let begin = Instant::now();
    let mut removed = Vec::new();
    for (number, watch) in watches.iter().enumerate() {
        sleep((gap * u32::try_from(number)?).saturating_sub(begin.elapsed()));
        world.operator.delete_user(&watch.user)?;
        removed.push(Instant::now());
    }
    let (mut added, mut ended) = (Vec::new(), Vec::new());
    for (watch, removed) in watches.into_iter().zip(removed) {
        let (time, end) = watch.thread.join().ok().context("a thread")??;
        added.push(time);
        ended.push(end.saturating_duration_since(removed));
    }
    let broken: u64 = uploads.into_iter().map(|upload| upload.stop().broken).sum();
    let (count, rate) = (extent.changes, extent.changes_per_second);
    let gate = |what: &str, times: Vec<Duration>| {
        let name = format!("{count} users are {what}, {rate} per second{place}, 99th percentile");
        Gate::new(name, DURATION, p99_millis(times), bound)
    };
    Ok(vec![
        gate("added", added),
        gate("removed, to the end of their session", ended),
        Gate::new(
            format!("sessions of others that end meanwhile{place}"),
            COUNT,
            as_float(broken),
            0.0,
        ),
    ])
}

/// Logs in as soon as it is possible, and waits for the end of the session. Returns the time of the login since
/// `written`, and the time of the end.
fn watch_session(
    node: SocketAddr,
    user: &FleetUser,
    to: SocketAddr,
    written: Instant,
) -> Result<(Duration, Instant)> {
    let (mut stream, at) = log_in_early(node, user, to, ATTEMPTS, LIMIT)?;
    Ok((at - written, wait_for_end(&mut stream)?))
}

/// Logs in as soon as it is possible, with an attempt every `pause`. Attempts do not wait for each other: a wrong login
/// is refused after half a second only, as it is to be for those who guess.
pub(super) fn log_in_early(
    node: SocketAddr,
    user: &FleetUser,
    to: SocketAddr,
    pause: Duration,
    limit: Duration,
) -> Result<(TcpStream, Instant)> {
    let (sender, receiver) = mpsc::channel();
    let begin = Instant::now();
    loop {
        let (own, sender) = (user.clone(), sender.clone());
        let attempt = thread::Builder::new().stack_size(256 << 10);
        attempt.spawn(move || {
            if let Ok(stream) = open_stream(node, &own, to) {
                // Of two that succeed, the second one is dropped.
                let _ = sender.send((stream, Instant::now()));
            }
        })?;
        match receiver.recv_timeout(pause) {
            Ok(first) => return Ok(first),
            Err(_) => ensure!(begin.elapsed() < limit, "{} at {node}: no login", user.name),
        }
    }
}

fn wait_for_end(stream: &mut TcpStream) -> Result<Instant> {
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    match stream.read(&mut [0]) {
        Ok(0) => {}
        Ok(_) => ensure!(false, "the sink has sent something"),
        Err(why) => ensure!(why.kind() == std::io::ErrorKind::ConnectionReset, "{why}"),
    }
    Ok(Instant::now())
}

/// Returns the 99th percentile, in milliseconds.
fn p99_millis(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let at = times.len().saturating_sub(1) * 99 / 100;
    times
        .get(at)
        .map_or(f64::NAN, |time| time.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_percentile_is_among_the_slowest() {
        let times = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(p99_millis(times), 99.0);
        assert_eq!(p99_millis(vec![Duration::from_millis(7)]), 7.0);
        assert!(p99_millis(vec![]).is_nan());
    }
}
