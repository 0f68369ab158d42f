//! A prober without the key cannot tell two causes of a refusal apart, neither by the reaction nor by
//! its time: for all kinds of keyed listeners and all policies (SEC-P1 to SEC-P3, SEC-R1 to SEC-R6).
//!
//! The time for which `drain` holds a connection is tested in the engine, without waiting for a minute.
//! `ADIT_PROBES=full` sends everything; a normal run only sends a part.

mod causes;
mod datagrams;
mod decoy;
mod kinds;

use std::net::SocketAddr;
use std::time::Duration;
use std::{env, thread};

use adit_interop::hostile_clients::{AfterWrite, Reaction};
use adit_interop::probe::{
    ProbeOutcome, ProbePlan, TimingSample, find_distinguishable_cause, raise_descriptor_limit,
    run_probes,
};

use self::causes::Probe;
use self::kinds::{KINDS, ListenerCase, Port, Recording};

/// Time limit of a request at the listeners of these tests.
const DEADLINE: Duration = Duration::from_millis(800);
/// Time without an answer that counts as silence.
const SILENCE: Duration = Duration::from_millis(1300);
/// Time limit for connections that end immediately or at the deadline, on a busy machine too.
const LATE: Duration = Duration::from_secs(15);
/// Number of simultaneous connections.
const CROWD: usize = 1000;
/// The same for comparisons of times: few, so that they do not delay each other.
const FEW: usize = 48;

/// The policy of a listener for unauthenticated peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    Drain,
    Reset,
    Close,
}

impl Policy {
    fn query(self) -> String {
        let name = format!("{self:?}").to_lowercase();
        format!("reject={name}&handshake={}ms", DEADLINE.as_millis())
    }

    /// Returns the reaction that a prober sees.
    fn reaction(self, ending: AfterWrite) -> Reaction {
        match (self, ending) {
            (_, AfterWrite::Close) | (Self::Drain, AfterWrite::Hold) => Reaction::Silence,
            (Self::Drain | Self::Close, _) => Reaction::End,
            (Self::Reset, _) => Reaction::Reset,
        }
    }
}

/// Returns true if everything is sent.
fn full() -> bool {
    env::var("ADIT_PROBES").is_ok_and(|how| how == "full")
}

/// Returns how often each cause is timed.
fn times() -> u64 {
    if full() { 1000 } else { 80 }
}

/// Sends all probes, and returns their outcomes.
fn send(to: SocketAddr, probes: &[Probe], crowd: usize, patience: Duration) -> Vec<ProbeOutcome> {
    let plans: Vec<ProbePlan<'_>> = probes.iter().map(Probe::plan).collect();
    run_probes(to, &plans, crowd, patience, probes.len() as u64).unwrap()
}

/// A listener under test.
struct Case {
    kind: &'static ListenerCase,
    policy: Policy,
}

impl Case {
    /// Tests all reactions of one kind of listener with one policy.
    fn examine(&self) {
        let (kind, policy) = (self.kind, self.policy);
        let mut port = kind.start(&policy.query());
        let old = port.record();
        let all = full() || (kind.chief && policy != Policy::Close);
        let mut probes = causes::lengths(kind, all);
        probes.extend(causes::replays(kind, &old, all));
        self.check("", port.addr(), &probes);

        port.restart(&old);
        let again = causes::replays(kind, &old, false);
        self.check("restarted", port.addr(), &again);

        let new = port.record();
        self.times(&port, &new, kind.remembers.then_some(&old));

        if kind.refused_elsewhere {
            let other = port.another(&new);
            let probes = causes::replays(kind, &new, false);
            self.check("elsewhere", other.addr(), &probes);
            other.stop().unwrap();
        }
        // A client is still served afterwards.
        port.record();
        port.stop();
    }

    /// Each probe sees the reaction of the policy, and short ones see nothing before the deadline.
    fn check(&self, context: &str, at: SocketAddr, probes: &[Probe]) {
        // Only silence has to be waited for. A busy machine may take longer than that for an end.
        let is_silent =
            |probe: &Probe| self.policy.reaction(probe.after_write) == Reaction::Silence;
        let (silent, ended): (Vec<_>, Vec<_>) = probes.iter().cloned().partition(is_silent);
        for (probes, patience) in [(silent, SILENCE), (ended, LATE)] {
            let seen = send(at, &probes, CROWD, patience);
            self.check_outcomes(context, &probes, &seen);
        }
    }

    fn check_outcomes(&self, context: &str, probes: &[Probe], seen: &[ProbeOutcome]) {
        for (probe, outcome) in probes.iter().zip(seen) {
            let what = || {
                let (cause, ending) = (&probe.cause, probe.after_write);
                format!("{}: {cause}, {ending:?}: {outcome:?}", self.name(context))
            };
            let wanted = self.policy.reaction(probe.after_write);
            assert_eq!(outcome.reaction, wanted, "{}", what());
            let ends_by_itself =
                self.policy != Policy::Drain && probe.after_write != AfterWrite::Close;
            if ends_by_itself && probe.bytes.len() < self.kind.head {
                assert!(outcome.elapsed >= DEADLINE, "{}", what());
            }
        }
    }

    fn name(&self, context: &str) -> String {
        format!("{}, {:?} {context}", self.kind.name, self.policy)
    }

    /// Compares when connections end: of requests that can be judged, and of those that cannot. A recording
    /// from before the restart is one of the causes, if the listener recognizes it.
    fn times(&self, port: &Port, new: &Recording, old: Option<&Recording>) {
        let kind = self.kind;
        let both = [AfterWrite::HalfClose, AfterWrite::Hold];
        if self.policy == Policy::Drain {
            // Here a connection ends when the prober ends its direction, for any request.
            self.apart("ends", port, FEW, |seed| {
                let mut probes = causes::whole(kind, new, old, seed);
                for probe in &mut probes {
                    probe.after_write = AfterWrite::HalfClose;
                }
                probes.extend(causes::short(kind, new, &both[..1], seed));
                probes
            });
        } else {
            self.apart("whole", port, FEW, |seed| {
                causes::whole(kind, new, old, seed)
            });
            self.apart("short", port, CROWD, |seed| {
                causes::short(kind, new, &both, seed)
            });
        }
    }

    /// Times each cause that `one` returns for a seed, and checks that none differs.
    fn apart(&self, what: &str, port: &Port, crowd: usize, one: impl Fn(u64) -> Vec<Probe>) {
        let mut seed = 0;
        let odd = find_distinguishable_cause(|| {
            let mut probes = Vec::new();
            let mut count = 0;
            for _ in 0..times() {
                seed += 10;
                let set = one(seed);
                count = set.len();
                probes.extend(set);
            }
            let outcomes = send(port.addr(), &probes, crowd, LATE);
            for (probe, outcome) in probes.iter().zip(&outcomes) {
                let (cause, wanted) = (&probe.cause, self.policy.reaction(probe.after_write));
                assert_eq!(outcome.reaction, wanted, "{}: {cause}", self.name(what));
            }
            let sample = |cause: usize| TimingSample {
                cause: format!("{}, {:?}", probes[cause].cause, probes[cause].after_write),
                times: (outcomes.iter().skip(cause).step_by(count))
                    .map(|outcome| outcome.elapsed)
                    .collect(),
            };
            Ok((0..count).map(sample).collect())
        });
        assert_eq!(odd.unwrap(), None, "{}", self.name(what));
    }
}

/// Tests all policies simultaneously, because they mostly wait.
fn examine(kind: usize) {
    raise_descriptor_limit().unwrap();
    let kind = &KINDS[kind];
    thread::scope(|scope| {
        for policy in [Policy::Drain, Policy::Reset, Policy::Close] {
            scope.spawn(move || Case { kind, policy }.examine());
        }
        scope.spawn(|| decoy::examine(kind));
    });
}

#[test]
fn causes_at_a_2022_server_with_one_key() {
    examine(0);
}

#[test]
fn causes_at_a_2022_server_with_users() {
    examine(1);
}

#[test]
fn causes_at_a_2022_relay() {
    examine(2);
}

#[test]
fn causes_at_an_aead_server_with_one_password() {
    examine(3);
}

#[test]
fn causes_at_an_aead_server_with_users() {
    examine(4);
}
