//! Tests of the log, with steps of several threads.

use super::*;

#[test]
fn only_what_happens_in_a_step_is_recorded() {
    let (log, other) = (DecisionLog::default(), DecisionLog::default());
    log.record(|| unreachable!("no step is observed"));
    let (done, entries) = log.observe(|| {
        log.record(|| vec![1]);
        other.record(|| unreachable!("the step is observed for another log"));
        log.record(|| vec![2]);
        7
    });
    assert_eq!((done, entries), (7, vec![vec![1], vec![2]]));
    log.record(|| unreachable!("the step is over"));
    let (inner, outer) = log.observe(|| {
        log.record(|| vec![3]);
        let (_, inner) = other.observe(|| other.record(|| vec![4]));
        log.record(|| vec![5]);
        inner
    });
    assert_eq!((inner, outer), (vec![vec![4]], vec![vec![3], vec![5]]));
}

#[test]
fn a_panic_ends_the_observation() {
    let log = DecisionLog::default();
    let step = std::panic::AssertUnwindSafe(|| log.observe(|| panic!("a step fails")));
    assert!(std::panic::catch_unwind(step).is_err());
    log.record(|| unreachable!("no step is observed"));
    assert_eq!(log.observe(|| log.record(|| vec![1])).1, [[1]]);
}

#[test]
fn steps_of_threads_are_told_apart() {
    let log = DecisionLog::default();
    let ((), entries) = log.observe(|| {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                log.record(|| unreachable!("this thread runs no step"));
                log.observe(|| log.record(|| vec![1])).1
            });
            assert_eq!(other.join().unwrap(), [[1]]);
        });
        log.record(|| vec![2]);
    });
    assert_eq!(entries, [[2]]);
}
