//! Flows that keep a processor busy have separate threads.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::traffic;

use crate::setup::{server, start};
use crate::ssh_hop::{Ours, front};

/// Returns the processor time of the threads with this name, in ticks; `None` if there are none.
fn ticks(process: u32, name: &str) -> Option<u64> {
    let mut sum = None;
    for task in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let Ok(stat) = fs::read_to_string(task.unwrap().path().join("stat")) else {
            continue;
        };
        let (head, rest) = stat.rsplit_once(')').unwrap();
        if head.split_once('(').unwrap().1 == name {
            let fields: Vec<_> = rest.split_whitespace().collect();
            let time = |n: usize| fields[n].parse::<u64>().unwrap();
            *sum.get_or_insert(0) += time(11) + time(12);
        }
    }
    sum
}

/// Returns how often the threads with this name had to wait for work.
fn turns(process: u32, name: &str) -> u64 {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let path = task.unwrap().path().join("status");
        let status = fs::read_to_string(path).unwrap_or_default();
        let field = |key: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(key));
            found.unwrap_or_default().trim()
        };
        if field("Name:") == name {
            sum += field("voluntary_ctxt_switches:").parse::<u64>().unwrap();
        }
    }
    sum
}

/// Sends to a peer that echoes everything, until the connection ends.
fn bulk(mut stream: std::net::TcpStream) {
    stream.write_all(b"ECHO\n").unwrap();
    let mut back = stream.try_clone().unwrap();
    let reader = thread::spawn(move || {
        let mut all = vec![0; 1 << 20];
        while back.read(&mut all).is_ok_and(|n| n > 0) {}
    });
    let all = vec![7; 1 << 20];
    while stream.write_all(&all).is_ok() {}
    reader.join().unwrap();
}

/// Waits until the threads with this name have worked in each of these processes.
fn wait_for_work(name: &str, processes: &[u32]) {
    let begun = Instant::now();
    let works = |&process: &u32| ticks(process, name).unwrap_or(0) >= 20;
    while !processes.iter().all(works) {
        assert!(begun.elapsed() < Duration::from_secs(30), "no {name} lane");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn bulk_works_on_threads_of_its_own_and_ends_with_the_process() {
    let origin = OriginServer::start().unwrap();
    let mut far = server(BLAKE3_AES_128);
    let target = format!("tcp://127.0.0.1:0/{}", origin.addr());
    let mut near = start(&["run", &target, &BLAKE3_AES_128.url(far.addr())]);
    traffic::check_one_byte(traffic::connect_directly(near.addr()).unwrap()).unwrap();
    let processes = [near.process().id(), far.process().id()];
    for process in processes {
        assert_eq!(ticks(process, "bulk"), None, "not before there is bulk");
    }
    let flow = traffic::connect_directly(near.addr()).unwrap();
    let flow = thread::spawn(move || bulk(flow));
    wait_for_work("bulk", &processes);
    // Small requests are still served.
    traffic::check_one_byte(traffic::connect_directly(near.addr()).unwrap()).unwrap();
    for adit in [&mut near, &mut far] {
        adit.process().terminate().unwrap();
        let log = adit.process().output();
        assert!(!log.contains("panicked"), "{log}");
    }
    flow.join().unwrap();
}

/// Several channels of one connection: its task and their relays share a thread.
#[test]
fn a_busy_ssh_connection_has_a_thread_of_its_own_and_leaves_it() {
    let origin = OriginServer::start().unwrap();
    let mut far = Ours::start("");
    let hop = format!("{}&sessions=1", far.hop());
    let mut near = front(origin.addr(), &[&hop]);
    traffic::check_one_byte(traffic::connect_directly(near.addr()).unwrap()).unwrap();
    let processes = [near.process().id(), far.adit.process().id()];
    for process in processes {
        assert_eq!(ticks(process, "session"), None, "not before there is bulk");
    }
    let flows: Vec<_> = (0..2)
        .map(|_| {
            let flow = traffic::connect_directly(near.addr()).unwrap();
            let end = flow.try_clone().unwrap();
            (thread::spawn(move || bulk(flow)), end)
        })
        .collect();
    wait_for_work("session", &processes);
    traffic::check_one_byte(traffic::connect_directly(near.addr()).unwrap()).unwrap();
    for (flow, end) in flows {
        end.shutdown(Shutdown::Both).unwrap();
        flow.join().unwrap();
    }
    // Few bytes, for long enough that everything has moved back.
    let small = || {
        for _ in 0..8 {
            sleep(Duration::from_millis(110));
            traffic::check_one_byte(traffic::connect_directly(near.addr()).unwrap()).unwrap();
        }
    };
    small();
    let before = processes.map(|process| turns(process, "session"));
    small();
    assert_eq!(processes.map(|process| turns(process, "session")), before);
    for adit in [&mut near, &mut far.adit] {
        adit.process().terminate().unwrap();
        let log = adit.process().output();
        assert!(!log.contains("panicked"), "{log}");
    }
}
