//! What a server's handshake costs with one user and with ten thousand (SIP023): a request is read
//! to its end and the head of the answer sealed. Users come in no order, so that what is known of
//! one of ten thousand is in no near cache.
//!
//! `cargo run --release -p adit-shadowsocks --example users`

#![allow(clippy::unwrap_used, reason = "an example that measures")]

use std::sync::Arc;

use adit_shadowsocks::tcp::{ServerHandshake, client};
use adit_shadowsocks::{Key, KeyChain, Method, Restart, SaltPool, Users};
use adit_wire::law::seal_all;
use adit_wire::{Entropy, Handshake, Rx, Seal, Step, Tx, Unix};
use rustix::time::{ClockId, clock_gettime};

const METHOD: Method = Method::Blake3Aes128Gcm;
const NOW: Unix = Unix(1_700_000_000);
const HANDSHAKES: usize = 4_000;
const ROUNDS: usize = 31;
/// Handshakes that are timed together.
const FEW: usize = 8;

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

    /// Nanoseconds per handshake, for each few of them.
    fn round(&self, chance: &mut Chance, times: &mut Vec<f64>) {
        let salts = Arc::new(SaltPool::new([1; 16], NOW, Restart::Lenient));
        let mut wires = self.requests.clone();
        for few in wires.chunks_exact_mut(FEW) {
            let start = worked();
            for wire in few {
                let clock = Arc::new(NOW);
                let mut core = ServerHandshake::new(&self.users, clock, salts.clone(), chance);
                let step = core.step(&mut Rx::new(wire), &mut Tx::new(&mut Vec::new()));
                let Ok(Step::Done(mut accepted)) = step else {
                    panic!("not accepted");
                };
                assert!(accepted.user.is_some());
                let room = accepted.seal.room();
                let mut answer = [0; 128];
                let sealed = accepted.seal.seal(&mut answer, room.head..room.head + 1);
                assert!(sealed.is_ok());
            }
            times.push((worked() - start) / FEW as f64);
        }
    }
}

/// Time this thread has been on a CPU, in nanoseconds.
fn worked() -> f64 {
    let t = clock_gettime(ClockId::ThreadCPUTime);
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

fn main() {
    let mut chance = Chance(1);
    let setups = [1, 10_000].map(|count| Setup::new(count, &mut chance));
    let mut times = [const { Vec::new() }; 2];
    // Turn by turn and few by few, so that what else the machine does falls on both, and on few.
    for _ in 0..ROUNDS {
        for (setup, times) in setups.iter().zip(&mut times) {
            setup.round(&mut chance, times);
        }
    }
    let [one, many] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        [10, 50].map(|percent| times[times.len() * percent / 100])
    });
    for (what, one, many) in [
        ("fastest tenth", one[0], many[0]),
        ("median", one[1], many[1]),
    ] {
        let more = (many / one - 1.0) * 100.0;
        println!("{what:>13}: 1 user {one:5.0} ns, 10,000 users {many:5.0} ns, {more:+.1} %");
    }
}
