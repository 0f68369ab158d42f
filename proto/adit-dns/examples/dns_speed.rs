//! Measures replies from the cache and from the table of fake addresses, from the bytes of the query to those
//! of the reply: the best of several batches by the thread's CPU time.
//!
//! `cargo run --release -p adit-dns --example dns_speed [NAMES]`

use core::time::Duration;
use std::hint::black_box;
use std::sync::Arc;
use std::{env, error::Error};

use adit_dns::{
    Cache, CacheLimits, ClientQuery, FakeIpNetworks, FakeIpTable, RecordType, UpstreamQuery,
};
use adit_wire::Time;
use rustix::time::{ClockId, clock_gettime};

/// Number of batches of each measurement.
const BATCHES: u32 = 7;
/// Replies of a batch.
const REPLIES: usize = 200_000;

fn main() -> Result<(), Box<dyn Error>> {
    let names = env::args().nth(1).map(|argument| argument.parse());
    let names: usize = names.transpose()?.unwrap_or(10_000);
    let name = |n: usize| format!("host{n}.service.example.test");
    let limits = CacheLimits {
        entries: names,
        bytes: usize::MAX,
        ..CacheLimits::default()
    };
    let mut cache = Cache::new(limits);
    let networks = FakeIpNetworks {
        v4: Some("198.18.0.0/15".parse()?),
        v6: None,
    };
    let mut table = FakeIpTable::new(networks, names)?;
    let client = [192, 0, 2, 7].into();
    let mut queries = Vec::new();
    for n in 0..names {
        let name = name(n);
        let asked = UpstreamQuery::new(&name, RecordType::A, 7)?;
        let query = ClientQuery::parse(&asked.to_bytes())?;
        let addresses = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let reply = query.address_reply(&addresses, Duration::from_secs(300));
        let answer = asked.check_answer(&reply)?;
        cache.insert(&name, RecordType::A, Arc::new(answer), Time(0));
        table.address_for(&name, RecordType::A, client);
        queries.push(asked.to_bytes());
    }
    println!(
        "{names} names: {} KiB of answers in the cache",
        cache.bytes() / 1024
    );
    let now = Time(5_000_000);
    let ns = best(&queries, |query| {
        let query = ClientQuery::parse(query).ok()?;
        let found = cache.get(query.name(), query.record_type(), now)?;
        Some(found.answer.reply_to(&query, found.age))
    });
    println!("reply from the cache      {ns:6.0} ns");
    let ns = best(&queries, |query| {
        let query = ClientQuery::parse(query).ok()?;
        let address = table.address_for(query.name(), query.record_type(), client)?;
        Some(query.address_reply(&[address], Duration::from_secs(1)))
    });
    println!("reply with a fake address {ns:6.0} ns");
    Ok(())
}

/// Returns the nanoseconds of one reply of the best batch.
fn best(queries: &[Vec<u8>], mut reply: impl FnMut(&[u8]) -> Option<Vec<u8>>) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = cpu_ns();
        // Neighbours in the table are not neighbours here.
        for n in 0..REPLIES {
            let query = &queries[n.wrapping_mul(0x9e37_79b1) % queries.len()];
            assert!(black_box(reply(black_box(query))).is_some(), "no reply");
        }
        best = best.min((cpu_ns() - start) / REPLIES as f64);
    }
    best
}

fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
