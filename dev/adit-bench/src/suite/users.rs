//! Suite `users`: the cost of many users for a server, in memory: whole handshakes, and the salts
//! that are stored against replays. Quotas and the dashboard are in `quotas`.

use std::sync::Arc;
use std::time::Duration;

use adit_net::system::ThreadRng;
use adit_shadowsocks::tcp::{ServerHandshake, client_codecs};
use adit_shadowsocks::{Key, KeyChain, Method, RestartPolicy, SaltPool, UserId, Users};
use adit_wire::{
    Entropy, Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, Seal, UnixTime,
};
use anyhow::{Context, Result, bail, ensure};

use super::crypto::cpu_clock;
use super::rounds::BenchRun;
use super::{Suite, quotas};
use crate::figures::{Figures, NS_PER_OP, as_float, whole_figure};

/// The clock of all clients and servers.
const NOW: UnixTime = UnixTime(1_700_000_000);

/// Number of handshakes that are timed together: few, so that other activity of the machine affects
/// few.
const GROUP_LEN: usize = 8;

/// Number of requests per pass.
const REQUESTS: usize = 2048;

/// Salts of a full pool, fewer than its capacity of a million: they are spread over its shards at random, and with 990,000
/// one of them was full in every eighth round.
const SALTS: u64 = 980_000;

/// The users of a server, and its previous knowledge.
#[derive(Debug, Clone, Copy)]
struct UserGroup {
    case: &'static str,
    who: &'static str,
    method: Method,
    users: usize,
    /// True if the server knows the client's address from an earlier connection.
    is_known_address: bool,
}

const IDENTIFIED: &str = "a handshake with identity headers";
const BY_TRIAL: &str = "a handshake in the AEAD edition, users found by trial";

const fn user_group(
    case: &'static str,
    who: &'static str,
    method: Method,
    users: usize,
    known: bool,
) -> UserGroup {
    UserGroup {
        case,
        who,
        method,
        users,
        is_known_address: known,
    }
}

const SEEN_ADDRESS: &str = "100 users, the address seen before";
const NEW_ADDRESS: &str = "100 users, a new address";

const USER_GROUPS: [UserGroup; 5] = [
    user_group(IDENTIFIED, "1 user", Method::Blake3Aes128Gcm, 1, false),
    user_group(
        IDENTIFIED,
        "10,000 users",
        Method::Blake3Aes128Gcm,
        10_000,
        false,
    ),
    user_group(BY_TRIAL, "1 user", Method::Aes128Gcm, 1, false),
    user_group(BY_TRIAL, SEEN_ADDRESS, Method::Aes128Gcm, 100, true),
    user_group(BY_TRIAL, NEW_ADDRESS, Method::Aes128Gcm, 100, false),
];

/// Measures every group in every round, then the salts.
pub(super) fn run_suite(bench: &mut BenchRun) {
    let least = Duration::from_millis(bench.settings.amounts().cipher_millis);
    for case in [IDENTIFIED, BY_TRIAL] {
        let mut setups: Vec<_> = USER_GROUPS
            .iter()
            .filter(|crowd| crowd.case == case)
            .map(|crowd| (crowd, HandshakeSetup::new(*crowd, &mut ThreadRng)))
            .collect();
        for round in 1..=bench.settings.rounds() {
            for (crowd, setup) in &mut setups {
                let outcome = match setup {
                    Ok(setup) => setup.measure_handshakes(least),
                    Err(why) => Err(anyhow::anyhow!("{why:#}")),
                };
                bench
                    .journal
                    .record_outcome(Suite::Users, case, crowd.who, round, outcome);
            }
        }
    }
    // A smoke run uses fewer.
    let count = if least < Duration::from_millis(10) {
        SALTS / 100
    } else {
        SALTS
    };
    for round in 1..=bench.settings.rounds() {
        for (who, stamp) in [("2022 edition", Some(NOW)), ("AEAD edition", None)] {
            let outcome = measure_salts(count, stamp);
            let case = "a salt looked up and kept, up to 980,000 of them";
            bench
                .journal
                .record_outcome(Suite::Users, case, who, round, outcome);
        }
    }
    quotas::run_suite(bench);
}

/// Returns the wire bytes of a single record.
pub(super) fn seal_record(seal: &mut impl Seal, payload: &[u8]) -> Result<Vec<u8>> {
    let overhead = seal.overhead();
    ensure!(
        payload.len() <= overhead.max_payload,
        "the payload is longer than a record"
    );
    let end = overhead.head + payload.len();
    let mut record = vec![0; overhead.head];
    record.extend_from_slice(payload);
    record.resize(end + overhead.tail, 0);
    let sealed = seal.seal(&mut record, overhead.head..end)?;
    Ok(record.get(sealed).context("a sealed range")?.to_vec())
}

/// A server's users, and their requests in random order, so that the data of one of many users is
/// in no near cache.
struct HandshakeSetup {
    users: Arc<Users>,
    requests: Vec<(Vec<u8>, Option<UserId>)>,
}

impl HandshakeSetup {
    fn new(crowd: UserGroup, rng: &mut dyn Entropy) -> Result<Self> {
        let method = crowd.method;
        let (identity, _) = Key::generate(method, rng);
        let secrets: Vec<_> = (0..crowd.users)
            .map(|_| Key::generate(method, rng).1)
            .collect();
        let named = secrets.iter().enumerate();
        let named = named.map(|(n, secret)| (format!("user-{n:05}"), secret));
        let headers = method == Method::Blake3Aes128Gcm;
        let users = if headers {
            Users::with_identity_key(&identity, named)?
        } else {
            Users::with_trial_keys(method, named)?
        };
        let target = "example.com:443"
            .parse()
            .context("cannot parse the target")?;
        let mut requests = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let mut random = [0; 8];
            rng.fill(&mut random);
            let who = usize::try_from(u64::from_le_bytes(random) >> 1)? % crowd.users;
            let own = Key::parse(method, secrets.get(who).context("no such user")?)?;
            let before = if headers {
                vec![identity.clone()]
            } else {
                vec![]
            };
            let chain = KeyChain::new(before, own)?;
            let (mut seal, _) = client_codecs(&chain, &target, Arc::new(NOW), rng)?;
            let request = seal_record(&mut seal, &[7; 300])?;
            let name = format!("user-{who:05}");
            let known = users.find_by_name(&name).filter(|_| crowd.is_known_address);
            requests.push((request, known.map(|user| user.id())));
        }
        Ok(Self { users, requests })
    }

    /// Measures the time of a handshake, from the request to the head of the answer: the fastest
    /// tenth, since the rest is due to other activity of the machine.
    fn measure_handshakes(&self, least: Duration) -> Result<Figures> {
        let start = cpu_clock();
        let mut times = Vec::new();
        while times.is_empty() || cpu_clock() - start < least {
            let salts = Arc::new(SaltPool::new([1; 16], NOW, RestartPolicy::Lenient));
            let mut requests = self.requests.clone();
            for few in requests.chunks_exact_mut(GROUP_LEN) {
                let start = cpu_clock();
                for (wire, known) in few {
                    self.accept_request(wire, *known, &salts)?;
                }
                times.push((cpu_clock() - start).as_secs_f64() * 1e9 / GROUP_LEN as f64);
            }
        }
        times.sort_by(f64::total_cmp);
        let fast = times
            .get(times.len() / 10)
            .context("no time was measured")?;
        Ok(vec![whole_figure(NS_PER_OP, *fast)])
    }

    fn accept_request(
        &self,
        wire: &mut [u8],
        known: Option<UserId>,
        salts: &Arc<SaltPool>,
    ) -> Result<()> {
        let handshake =
            ServerHandshake::new(&self.users, Arc::new(NOW), salts.clone(), &mut ThreadRng);
        let step = handshake.with_hint(known).step(
            &mut HandshakeInput::new(wire),
            &mut HandshakeOutput::new(&mut Vec::new()),
        )?;
        let HandshakeProgress::Done(mut accepted) = step else {
            bail!("the server waits for more than a whole request");
        };
        ensure!(accepted.user.is_some(), "the server found no user");
        let room = accepted.seal.overhead();
        let mut answer = [0; 128];
        accepted.seal.seal(&mut answer, room.head..room.head + 1)?;
        Ok(())
    }
}

/// Measures the time of one salt, from an empty pool to `count`.
fn measure_salts(count: u64, stamp: Option<UnixTime>) -> Result<Figures> {
    let pool = SaltPool::new([1; 16], NOW, RestartPolicy::Lenient);
    let mut salts = vec![[0; 32]; usize::try_from(count)?];
    for salt in &mut salts {
        ThreadRng.fill(salt);
    }
    let start = cpu_clock();
    for salt in &salts {
        pool.insert_salt(salt, stamp, NOW)?;
    }
    let took = (cpu_clock() - start).as_secs_f64() * 1e9;
    Ok(vec![whole_figure(NS_PER_OP, took / as_float(count))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crowd_is_served() {
        for mut crowd in USER_GROUPS {
            crowd.users = crowd.users.min(50);
            let setup = HandshakeSetup::new(crowd, &mut ThreadRng).unwrap();
            assert_eq!(setup.requests.len(), REQUESTS);
            let known = setup.requests.iter().filter(|(_, id)| id.is_some()).count();
            assert_eq!(known, if crowd.is_known_address { REQUESTS } else { 0 });
            assert_eq!(setup.measure_handshakes(Duration::ZERO).unwrap().len(), 1);
        }
    }

    #[test]
    fn salts_are_timed_once_each() {
        for stamp in [Some(NOW), None] {
            assert_eq!(measure_salts(1000, stamp).unwrap().len(), 1);
        }
    }
}
