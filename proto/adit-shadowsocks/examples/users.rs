//! What a server's handshake costs with one user and with ten thousand (SIP023).
//!
//! `cargo run --release -p adit-shadowsocks --example users`

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an example that measures"
)]

use std::sync::Arc;
use std::time::Instant;

use adit_shadowsocks::tcp::{ServerHandshake, client};
use adit_shadowsocks::{Key, KeyChain, Method, Restart, SaltPool, Users};
use adit_wire::law::seal_all;
use adit_wire::{Entropy, Handshake, Rx, Step, Tx, Unix};

const METHOD: Method = Method::Blake3Aes128Gcm;
const NOW: Unix = Unix(1_700_000_000);
const HANDSHAKES: usize = 4_000;
const ROUNDS: usize = 31;

/// SplitMix64: the same numbers in every run.
struct Chance(u64);

impl Entropy for Chance {
    fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let bytes = (z ^ (z >> 31)).to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}

/// A server with `count` users, and requests of users in no order.
struct Setup {
    users: Arc<Users>,
    requests: Vec<Vec<u8>>,
}

impl Setup {
    fn new(count: usize, chance: &mut Chance) -> Self {
        let (identity, _) = Key::generate(METHOD, chance);
        let secrets: Vec<_> = (0..count)
            .map(|_| Key::generate(METHOD, chance).1)
            .collect();
        let named = secrets.iter().enumerate();
        let named = named.map(|(n, secret)| (format!("user-{n:05}"), secret));
        let users = Users::identified(&identity, named).unwrap();
        let target = "example.com:443".parse().unwrap();
        let mut request = || {
            let who = usize::from(chance.between(0, u16::try_from(count - 1).unwrap()));
            let own = Key::parse(METHOD, &secrets[who]).unwrap();
            let chain = KeyChain::new(vec![identity.clone()], own).unwrap();
            let (mut seal, _) = client(&chain, &target, Arc::new(NOW), chance).unwrap();
            seal_all(&mut seal, &[7; 300], usize::MAX).unwrap()
        };
        let requests = (0..HANDSHAKES).map(|_| request()).collect();
        Self { users, requests }
    }

    /// Nanoseconds per handshake.
    fn round(&self, chance: &mut Chance) -> f64 {
        let salts = Arc::new(SaltPool::new([1; 16], NOW, Restart::Lenient));
        let mut wires = self.requests.clone();
        let start = Instant::now();
        for wire in &mut wires {
            let mut core = ServerHandshake::new(&self.users, Arc::new(NOW), salts.clone(), chance);
            let step = core.step(&mut Rx::new(wire), &mut Tx::new(&mut Vec::new()));
            assert!(matches!(step, Ok(Step::Done(accepted)) if accepted.user.is_some()));
        }
        start.elapsed().as_secs_f64() * 1e9 / HANDSHAKES as f64
    }
}

fn main() {
    let mut chance = Chance(1);
    let setups = [1, 10_000].map(|count| Setup::new(count, &mut chance));
    let mut costs = [const { Vec::new() }; 2];
    // Turn by turn, so that what else the machine does falls on both.
    for _ in 0..ROUNDS {
        for (setup, costs) in setups.iter().zip(&mut costs) {
            costs.push(setup.round(&mut chance));
        }
    }
    let [one, many] = costs.map(|mut costs| {
        costs.sort_by(f64::total_cmp);
        (costs[0], costs[ROUNDS / 2])
    });
    println!("     1 user   {:6.0} ns, median {:6.0} ns", one.0, one.1);
    println!("10,000 users  {:6.0} ns, median {:6.0} ns", many.0, many.1);
    println!(
        "more by {:.1} % (median {:.1} %)",
        percent(one.0, many.0),
        percent(one.1, many.1)
    );
}

fn percent(one: f64, many: f64) -> f64 {
    (many / one - 1.0) * 100.0
}
