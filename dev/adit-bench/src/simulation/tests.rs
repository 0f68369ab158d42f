//! The laws of a fleet, in virtual time, with fixed seeds.

use super::event_queue::Micros;
use super::scenario::{Faults, Flow, LeaseRule, MILLISECOND, SECOND, Scenario};
use super::{Outcome, simulate};

const MIB: u64 = 1 << 20;

impl Flow {
    /// Returns the flow from `start` on.
    const fn starting_at(mut self, start: Micros) -> Self {
        self.start = start;
        self
    }

    /// Returns the flow with a pause.
    const fn pausing(mut self, from: Micros, to: Micros) -> Self {
        self.pause = from;
        self.resume = to;
        self
    }
}

const GIB: u64 = 1 << 30;
/// 10 Gbit/s.
const TOTAL_RATE: u64 = 1_250_000_000;

/// A quiet fleet in one data centre.
fn quiet(nodes: u32, users: u32) -> Scenario {
    Scenario {
        seed: 1,
        nodes,
        users,
        quota: None,
        lease: adit_fleet::lease,
        flows: Vec::new(),
        duration: 10 * SECOND,
        settle: 20 * SECOND,
        delay: (100, 400),
        changes_per_second: 0,
        faults: Faults::default(),
    }
}

/// Every law that holds whatever happens.
#[track_caller]
fn check_counts(outcome: &Outcome) {
    assert_eq!(outcome.counted_twice, 0, "{outcome:?}");
    assert_eq!(outcome.miscounted, 0, "{outcome:?}");
    assert_eq!(outcome.counted, outcome.moved - outcome.lost, "{outcome:?}");
    assert_eq!(outcome.differing_tables, 0, "{outcome:?}");
}

#[test]
fn a_scenario_has_one_outcome() {
    let mut scenario = quiet(4, 20);
    scenario.changes_per_second = 10;
    scenario.faults.lost_replies = 50;
    scenario.faults.kill_every = SECOND;
    scenario.flows = (0..4).map(|node| Flow::new(node, node + 1, MIB)).collect();
    let first = simulate(&scenario).unwrap();
    assert_eq!(simulate(&scenario).unwrap(), first);
    scenario.seed = 2;
    assert_ne!(simulate(&scenario).unwrap(), first);
}

#[test]
fn nothing_is_counted_twice_or_forgotten() {
    for seed in 1..=8 {
        let mut scenario = quiet(8, 40);
        scenario.seed = seed;
        scenario.changes_per_second = 20;
        scenario.faults = Faults {
            lost_requests: 30,
            lost_replies: 30,
            kill_every: 700 * MILLISECOND,
            partition: Some((4, 3 * SECOND, 6 * SECOND)),
            stalls: vec![(2 * SECOND, 2500 * MILLISECOND), (7 * SECOND, 9 * SECOND)],
            ..Faults::default()
        };
        let flow = |n: u32| Flow::new(n % 8, 1 + n % 30, 3 * MIB);
        scenario.flows = (0..64).map(flow).collect();
        let outcome = simulate(&scenario).unwrap();
        check_counts(&outcome);
        assert!(outcome.kills >= 10, "{outcome:?}");
        assert!(outcome.repeated_batches >= 10, "{outcome:?}");
        assert!(
            outcome.lost > 0 && outcome.counted > 64 * MIB,
            "{outcome:?}"
        );
    }
}

/// The flows of one user at every node, all as fast, together 10 Gbit/s.
fn even_flows(nodes: u32) -> Vec<Flow> {
    let each = TOTAL_RATE / u64::from(nodes);
    (0..nodes).map(|node| Flow::new(node, 1, each)).collect()
}

#[track_caller]
fn check_overshoot(scenario: &Scenario, most: u64) -> Outcome {
    let outcome = simulate(scenario).unwrap();
    check_counts(&outcome);
    assert_eq!(outcome.below_quota, 0, "{outcome:?}");
    assert!(outcome.overshoot <= most, "{outcome:?}");
    outcome
}

#[test]
fn sixteen_nodes_exceed_a_gibibyte_by_32_mebibytes_at_most() {
    for seed in 1..=3 {
        let mut scenario = quiet(16, 1);
        scenario.seed = seed;
        scenario.quota = Some(GIB);
        scenario.flows = even_flows(16);
        let outcome = check_overshoot(&scenario, 32 * MIB);
        assert!(outcome.cut_after <= 1200 * MILLISECOND, "{outcome:?}");
        // Nodes of very different speed, most of them slow when the quota ends.
        for (index, flow) in scenario.flows.iter_mut().enumerate() {
            *flow = Flow::new(flow.node, 1, TOTAL_RATE >> (1 + index % 6));
        }
        check_overshoot(&scenario, 32 * MIB);
    }
}

/// The worst that a user can do: take a lease everywhere, pause while the other nodes use up the quota, and
/// continue before the pausing nodes have heard of it.
fn paused_flows(nodes: u32) -> Vec<Flow> {
    let fast = TOTAL_RATE / u64::from(nodes / 2);
    let half = nodes / 2;
    let paused = |node| Flow::new(node, 1, fast).pausing(40 * MILLISECOND, 850 * MILLISECOND);
    let fast = |node| Flow::new(node, 1, fast).starting_at(40 * MILLISECOND);
    (0..half)
        .map(paused)
        .chain((half..nodes).map(fast))
        .collect()
}

#[test]
fn stale_leases_are_within_the_bound() {
    for seed in 1..=3 {
        let mut scenario = quiet(16, 1);
        scenario.seed = seed;
        scenario.quota = Some(GIB);
        scenario.flows = paused_flows(16);
        check_overshoot(&scenario, 32 * MIB);
    }
}

/// A user of 625 MB/s has leases of 113 MiB, and at a node where they pause, one of about 64 MiB after the next batch.
#[test]
fn the_leases_of_a_fast_user_are_within_the_bound() {
    for seed in 1..=3 {
        let mut scenario = quiet(4, 1);
        scenario.seed = seed;
        scenario.quota = Some(16 * GIB);
        scenario.duration = 30 * SECOND;
        scenario.flows = (0..4)
            .map(|node| {
                let flow = Flow::new(node, 1, TOTAL_RATE / 2).in_pieces(MILLISECOND);
                match node {
                    // The others use up the quota meanwhile.
                    0 | 1 => flow.pausing(3 * SECOND, 14 * SECOND),
                    _ => flow,
                }
            })
            .collect();
        let outcome = check_overshoot(&scenario, 2 * 113 * MIB);
        // With leases of 64 MiB all the time, nearly 400.
        assert!(outcome.batches < 280, "{outcome:?}");
    }
}

/// The rule without the part of the quota: leases that were granted when much was left outlast it.
#[test]
fn a_part_of_what_is_left_is_no_bound() {
    let rule: LeaseRule = |quota, used, nodes, _| {
        let left = quota.saturating_sub(used);
        let part = (left / (2 * u64::from(nodes))).min(64 * MIB);
        left.min(part.max(MIB))
    };
    let overshoot = |seed| {
        let mut scenario = quiet(16, 1);
        scenario.seed = seed;
        scenario.quota = Some(GIB);
        scenario.lease = rule;
        scenario.flows = paused_flows(16);
        simulate(&scenario).unwrap().overshoot
    };
    let most = (1..=3).map(overshoot).max().unwrap();
    assert!(most > 64 * MIB, "{} MiB", most / MIB);
}

#[test]
fn a_single_node_ends_at_the_quota() {
    let mut scenario = quiet(1, 1);
    scenario.quota = Some(100 * MIB + 5);
    scenario.flows = even_flows(1);
    check_overshoot(&scenario, 0);
}

#[test]
fn half_of_the_nodes_apart_keep_the_bound() {
    for seed in 1..=5 {
        let mut scenario = quiet(16, 100);
        scenario.seed = seed;
        scenario.quota = Some(GIB);
        scenario.duration = 150 * SECOND;
        scenario.changes_per_second = 5;
        // For two minutes, from before the end of the quota.
        scenario.faults.partition = Some((8, 500 * MILLISECOND, 120 * SECOND));
        scenario.flows = even_flows(16);
        let outcome = check_overshoot(&scenario, 32 * MIB);
        assert_eq!(outcome.differing_tables, 0);
    }
}

#[test]
fn tables_are_equal_two_seconds_after_a_partition() {
    for seed in 1..=5 {
        let mut scenario = quiet(16, 100);
        scenario.seed = seed;
        scenario.changes_per_second = 50;
        scenario.duration = 5 * SECOND;
        scenario.faults.partition = Some((8, SECOND, 5 * SECOND));
        scenario.settle = 2 * SECOND;
        let outcome = simulate(&scenario).unwrap();
        assert_eq!(outcome.differing_tables, 0, "{outcome:?}");
    }
}

#[test]
fn changes_arrive_in_the_time_that_messages_take() {
    let mut scenario = quiet(16, 1000);
    scenario.changes_per_second = 100;
    // 150 ms there and back.
    scenario.delay = (70 * MILLISECOND, 80 * MILLISECOND);
    let outcome = simulate(&scenario).unwrap();
    assert_eq!(outcome.propagation.len(), 16 * 999, "{outcome:?}");
    assert!(outcome.propagation_p99().unwrap() <= 300 * MILLISECOND);
}

/// No user is lost with the store: the nodes keep their users, and one of them seeds it again.
#[test]
fn an_emptied_store_is_seeded_by_a_node() {
    let mut scenario = quiet(8, 200);
    scenario.changes_per_second = 10;
    scenario.duration = 3 * SECOND;
    scenario.faults.flush = Some((4 * SECOND, 3 * SECOND));
    scenario.flows = (0..8).map(|node| Flow::new(node, node + 1, MIB)).collect();
    let before = {
        let mut scenario = scenario.clone();
        scenario.faults.flush = None;
        simulate(&scenario).unwrap()
    };
    let outcome = simulate(&scenario).unwrap();
    assert_eq!(outcome.users_at_end, before.users_at_end, "{outcome:?}");
    assert_eq!(outcome.differing_tables, 0, "{outcome:?}");
    assert_eq!(outcome.counted_twice, 0, "{outcome:?}");
}

#[test]
fn an_old_backup_never_counts_twice() {
    for seed in 1..=10 {
        let mut scenario = quiet(8, 20);
        scenario.seed = seed;
        scenario.faults.lost_replies = 100;
        scenario.faults.old_backup = Some((3 * SECOND, 6 * SECOND));
        scenario.flows = (0..16).map(|n| Flow::new(n % 8, 1 + n, MIB)).collect();
        let outcome = simulate(&scenario).unwrap();
        assert_eq!(outcome.counted_twice, 0, "{outcome:?}");
        assert!(outcome.counted < outcome.moved, "{outcome:?}");
    }
}

#[test]
fn a_thousand_nodes_and_many_users() {
    let mut scenario = quiet(1000, 5000);
    scenario.duration = 3 * SECOND;
    scenario.settle = 3 * SECOND;
    scenario.changes_per_second = 4;
    scenario.faults.kill_every = 100 * MILLISECOND;
    let flow = |n: u32| Flow::new(n % 1000, 1 + n, 100_000).in_pieces(300 * MILLISECOND);
    scenario.flows = (0..3000).map(flow).collect();
    let outcome = simulate(&scenario).unwrap();
    check_counts(&outcome);
    assert!(outcome.kills > 20, "{outcome:?}");
}
