//! The moment at which a rejected connection ends, in virtual time: the same for every cause (SEC-P1
//! to SEC-P3).
//!
//! Decisions take no virtual time, so that any difference here is deliberate. A test with a real clock
//! checks that the duration of decisions is not observable either.

mod listeners;
mod scripted;

use std::sync::Arc;
use std::time::Duration;

use adit_config::RejectPolicy;
use adit_interop::probe::{TimingSample, find_distinguishable_cause};
use tokio::runtime::{Builder, Runtime};

use self::listeners::{DEADLINE, KINDS, ProbedListener};
use self::scripted::{Act, Script, Seen};

/// Delay between the bytes that allow a decision and its effect.
const SETTLE: Duration = Duration::from_millis(1);
/// Maximum error of a timer.
const TICK: Duration = Duration::from_millis(2);
const NOW: Duration = Duration::ZERO;

/// Number of runs of each cause; `ADIT_PROBES=full` selects all that were requested.
fn times() -> usize {
    match std::env::var("ADIT_PROBES").as_deref() {
        Ok("full") => 1000,
        _ => 150,
    }
}

/// Sends the bytes immediately, then ends its direction if requested.
fn said(bytes: Vec<u8>, end: Option<Duration>) -> Script {
    let end = end.map(|end| (end, Act::End));
    [(NOW, Act::Say(bytes))].into_iter().chain(end).collect()
}

/// Runs all scripts simultaneously.
async fn meet_all(
    listener: &Arc<ProbedListener>,
    scripts: Vec<(String, Script)>,
) -> Vec<(String, Seen)> {
    let one = |(what, script): (String, Script)| {
        let listener = Arc::clone(listener);
        tokio::spawn(async move {
            let seen = listener.meet(script).await;
            let seen = seen.unwrap_or_else(|| panic!("{what}: let in"));
            assert_eq!(seen.answer, 0, "{what}: answered");
            (what, seen)
        })
    };
    let running: Vec<_> = scripts.into_iter().map(one).collect();
    let mut all = Vec::with_capacity(running.len());
    for one in running {
        all.push(one.await.unwrap());
    }
    all
}

/// Time advances only while all tasks wait.
fn virtual_time() -> Runtime {
    let mut builder = Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

/// Checks that all observations are equal, and returns the common one.
fn same(context: &str, all: &[(String, Seen)]) -> Seen {
    let (first, wanted) = &all[0];
    for (what, seen) in all {
        assert_eq!(
            seen.without_amount(),
            wanted.without_amount(),
            "{context}: {what}, unlike {first}"
        );
    }
    wanted.clone()
}

impl Seen {
    /// Removes the number of bytes sent, which the peer knows anyway.
    fn without_amount(&self) -> Self {
        Self {
            taken: 0,
            ..self.clone()
        }
    }
}

/// Checks that a peer observed this end and nothing before it.
fn ends(context: &str, policy: &RejectPolicy, seen: &Seen, at: Duration) {
    let (end, other) = match policy {
        RejectPolicy::Reset => (seen.reset, seen.end),
        _ => (seen.end, seen.reset),
    };
    let end = end.unwrap_or_else(|| panic!("{context}: {seen:?}"));
    assert!(
        end >= at && end <= at + TICK,
        "{context}: {end:?}, not {at:?}"
    );
    assert_eq!(other, None, "{context}");
}

/// SEC-P3: input that allows a decision ends directly, other input at the deadline, whatever it is and
/// even if the stream has ended.
#[test]
fn reset_and_close_have_two_moments() {
    for kind in &KINDS {
        for policy in [RejectPolicy::Reset, RejectPolicy::Close] {
            virtual_time().block_on(async {
                let listener = kind.open(policy.clone()).await;
                let context = format!("{}, {policy:?}", kind.name);
                for end in [None, Some(NOW), Some(Duration::from_secs(3))] {
                    let scripts = |causes: Vec<(String, Vec<u8>)>| {
                        let one = |(what, bytes)| (what, said(bytes, end));
                        causes.into_iter().map(one).collect()
                    };
                    let whole = meet_all(&listener, scripts(listener.causes())).await;
                    ends(&context, &policy, &same(&context, &whole), SETTLE);
                    let short = meet_all(&listener, scripts(listener.short_causes())).await;
                    ends(&context, &policy, &same(&context, &short), DEADLINE);
                }
            });
        }
    }
}

/// The number of bytes that allows a decision is that of a header, for each length of garbage.
#[test]
fn only_a_whole_header_is_judged() {
    for kind in &KINDS {
        for policy in [RejectPolicy::Reset, RejectPolicy::Close] {
            virtual_time().block_on(async {
                let listener = kind.open(policy.clone()).await;
                let context = format!("{}, {policy:?}", kind.name);
                let lengths = (1..=1024).chain([64 << 10]);
                let all = lengths.flat_map(|len| {
                    let bytes = ProbedListener::garbage(len);
                    [None, Some(NOW)].map(|end| (len.to_string(), said(bytes.clone(), end)))
                });
                for (len, seen) in meet_all(&listener, all.collect()).await {
                    let whole = len.parse::<usize>().unwrap() >= kind.head;
                    let at = if whole { SETTLE } else { DEADLINE };
                    ends(&format!("{context}, {len} bytes"), &policy, &seen, at);
                }
            });
        }
    }
}

/// Late bytes, or single ones, move the end accordingly: it follows the byte that completes a header.
#[test]
fn slow_probers_learn_no_more() {
    for kind in &KINDS {
        virtual_time().block_on(async {
            let policy = RejectPolicy::Reset;
            let listener = kind.open(policy.clone()).await;
            let slowly = |(what, bytes): (String, Vec<u8>)| {
                let each = bytes.iter().enumerate().map(|(n, byte)| {
                    let n = u32::try_from(n).unwrap();
                    (Duration::from_millis(20) * n, Act::Say(vec![*byte]))
                });
                (what, each.collect::<Script>())
            };
            let all = listener.causes().into_iter().map(slowly).collect();
            let seen = same(kind.name, &meet_all(&listener, all).await);
            let whole = Duration::from_millis(20) * u32::try_from(kind.head - 1).unwrap();
            ends(kind.name, &policy, &seen, whole + SETTLE);
        });
    }
}

/// With `drain` the duration of a connection is random, and counts from its start: not from a decision,
/// which is made at the deadline for short input.
#[test]
fn the_time_of_draining_tells_no_cause() {
    for kind in &KINDS {
        let runtime = virtual_time();
        let listener = runtime.block_on(kind.open(RejectPolicy::Drain));
        let odd = find_distinguishable_cause(|| Ok(runtime.block_on(drained(&listener, times()))));
        assert_eq!(odd.unwrap(), None, "{}", kind.name);
    }
}

/// Returns the duration of connections of each cause.
async fn drained(listener: &Arc<ProbedListener>, times: usize) -> Vec<TimingSample> {
    let mut samples: Vec<TimingSample> = Vec::new();
    // As many simultaneous connections as one listener holds.
    for round in (0..times).step_by(100) {
        let mut all = Vec::new();
        for _ in 0..100.min(times - round) {
            let causes = listener.causes().into_iter().chain(listener.short_causes());
            all.extend(causes.map(|(what, bytes)| (what, said(bytes, None))));
        }
        for (what, seen) in meet_all(listener, all).await {
            let held = seen.end.unwrap_or_else(|| panic!("{what}: {seen:?}"));
            let promised = Duration::from_secs(60)..=Duration::from_secs(132) + TICK;
            assert!(promised.contains(&held), "{what}: {held:?}");
            match samples.iter_mut().find(|sample| sample.cause == what) {
                Some(sample) => sample.times.push(held),
                None => samples.push(TimingSample {
                    cause: what,
                    times: vec![held],
                }),
            }
        }
    }
    let all = || samples.iter().flat_map(|sample| &sample.times);
    let (least, most) = (all().min().unwrap(), all().max().unwrap());
    // One base duration per server, plus up to a tenth for each connection.
    assert!(
        *most <= *least + *least / 10 + TICK,
        "{least:?} to {most:?}"
    );
    samples
}

/// With `drain` the reaction to the end of a stream depends only on the peer's actions.
#[test]
fn a_drained_end_is_answered_alike() {
    for kind in &KINDS {
        virtual_time().block_on(async {
            let listener = kind.open(RejectPolicy::Drain).await;
            let ends_after = [
                (0, SETTLE),
                (3, Duration::from_millis(3)),
                (15, Duration::from_millis(15)),
                (12_000, Duration::from_millis(12_000)),
            ];
            for (end, due) in ends_after {
                let end = Duration::from_millis(end);
                let causes = listener.causes().into_iter().chain(listener.short_causes());
                // Without bytes there is no last one to count from.
                let causes = causes.filter(|(_, bytes)| !bytes.is_empty());
                let all = causes.map(|(what, bytes)| (what, said(bytes, Some(end))));
                let seen = same(kind.name, &meet_all(&listener, all.collect()).await);
                ends(kind.name, &RejectPolicy::Drain, &seen, due);
            }
        });
    }
}

/// Peers that send too much are stopped after the same number of bytes, and reset in the end.
#[test]
fn a_drain_takes_the_same_number_of_bytes() {
    for kind in &KINDS {
        virtual_time().block_on(async {
            let listener = kind.open(RejectPolicy::Drain).await;
            let flood = |(what, mut bytes): (String, Vec<u8>)| {
                // All start with the same number of bytes, so that all reads are equal.
                bytes.resize(2048, 0);
                let more = (0..80).map(|_| (NOW, Act::Say(vec![0; 32 << 10])));
                let first = [(NOW, Act::Say(bytes))].into_iter();
                (what, first.chain(more).collect::<Script>())
            };
            let causes = listener.causes().into_iter();
            let all = meet_all(&listener, causes.map(flood).collect()).await;
            for (what, seen) in &all {
                assert_eq!(seen.taken, all[0].1.taken, "{}: {what}", kind.name);
                assert!(
                    seen.reset.is_some_and(|at| at >= Duration::from_secs(60)),
                    "{what}: {seen:?}"
                );
            }
            assert!((1 << 20..1 << 21).contains(&all[0].1.taken));
        });
    }
}
