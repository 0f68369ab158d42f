//! The processor time of the store server for the calls of nodes, one call after the other, by adit's client.

use std::time::{Duration, Instant};

use adit_fleet::{NodeStatus, PeriodLabel, SaltClaim, Store, UsageBatch, UserUsage};
use adit_fleet_world::{FleetWorld, Operator};
use adit_interop::store_server::StoreServer;
use adit_wire::{QuotaPeriod, UnixTime};
use anyhow::Result;

use super::extent::FleetExtent;
use crate::figures::{Figures, P50, P99, STORE_CPU, STORE_MEMORY, whole_figure};
use crate::process_cost::cpu_time;
use crate::suite::{BenchRun, Suite};

/// The title of the table of calls.
pub(super) const CALLS: &str = "calls of the store";
/// The title of the table of memory.
pub(super) const MEMORY: &str = "memory of the store";

/// Costs of the store that the model needs, in microseconds of its processor time and in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StoreCosts {
    pub(super) batch: f64,
    pub(super) batch_user: f64,
    pub(super) change: f64,
    pub(super) question: f64,
    pub(super) heartbeat: f64,
    pub(super) salt: f64,
    pub(super) user_bytes: f64,
    pub(super) usage_bytes: f64,
}

/// Measures the calls of a round, and records them.
pub(super) fn record_costs(bench: &mut BenchRun, extent: &FleetExtent, round: u32) {
    let mut record = |case: &str, row: &str, outcome: Result<Figures>| {
        bench
            .journal
            .record_outcome(Suite::Fleet, case, row, round, outcome);
    };
    match measure_costs(extent, &mut record) {
        Ok(_) => {}
        Err(why) => record(CALLS, "all", Err(why)),
    }
}

/// Measures all calls against a new store server.
pub(super) fn measure_costs(
    extent: &FleetExtent,
    record: &mut dyn FnMut(&str, &str, Result<Figures>),
) -> Result<StoreCosts> {
    let world = FleetWorld::new(StoreServer::start()?)?;
    let (operator, process) = (&world.operator, world.store.process()?.id());
    let mut costs = StoreCosts::default();
    let empty = world.store.info("used_memory")?;
    let count = u32::try_from(extent.users)?;
    let users = operator.add_users((0..count).map(|n| format!("user-{n:06}")), |_| {})?;
    let with_users = world.store.info("used_memory")?;
    costs.user_bytes = per(with_users.saturating_sub(empty), count);

    let mut run = |row: &str,
                   calls: u32,
                   units: u32,
                   call: &mut dyn FnMut(u32) -> Result<()>|
     -> Result<f64> {
        let cost = measure_calls(process, calls, call)?;
        let each = cost.cpu_micros / f64::from(units);
        let figures = vec![
            whole_figure(STORE_CPU, each),
            whole_figure(P50, cost.p50),
            whole_figure(P99, cost.p99),
        ];
        record(CALLS, row, Ok(figures));
        Ok(each)
    };
    let period = PeriodLabel::new(QuotaPeriod::Month, UnixTime(1_800_000_000));
    let batch = |number: u32, users: u32| UsageBatch {
        number: u64::from(number) + 1,
        entries: (1..=users)
            .map(|user| UserUsage {
                user,
                period: period.clone(),
                up: 1000,
                down: 5000,
            })
            .collect(),
    };
    let send = |operator: &Operator, node, batch: UsageBatch| -> Result<()> {
        operator.call(|store: &dyn Store| {
            Box::pin(async move { store.add_usage(node, &batch).await })
        })?;
        Ok(())
    };
    let many = count.min(1000);
    let few_calls = (extent.calls / 50).max(2);
    costs.batch = run("a batch of 1 user", extent.calls, 1, &mut |n| {
        send(operator, 1, batch(n, 1))
    })?;
    let whole = run(
        "a batch of 1,000 users, per user",
        few_calls,
        many,
        &mut |n| send(operator, 2, batch(n, many)),
    )?;
    costs.batch_user = whole;
    let with_usage = world.store.info("used_memory")?;
    costs.usage_bytes = per(with_usage.saturating_sub(with_users), many);

    let changed = users.first().cloned();
    let mut put = |_| -> Result<()> {
        let user = changed.clone().into_iter().collect::<Vec<_>>();
        operator.put_users(&user)
    };
    costs.change = run("a change of a user", extent.calls / 4, 1, &mut put)?;
    let head = operator.call(|store| store.head())?;
    let before_head = adit_fleet::ChangeId(head.0.saturating_sub(1));
    costs.question = run(
        "a question for changes with one change",
        extent.calls,
        1,
        &mut |_| {
            operator.call(|store| store.changes(before_head, Duration::ZERO))?;
            Ok(())
        },
    )?;
    let status = NodeStatus {
        id: 1,
        name: "node-1".to_owned(),
        version: "0.1.0".to_owned(),
        ..NodeStatus::default()
    };
    costs.heartbeat = run("a heartbeat", extent.calls, 1, &mut |_| {
        operator.call(|store| store.heartbeat(&status))?;
        Ok(())
    })?;
    costs.salt = run("a salt, 64 at once", extent.calls / 10, 64, &mut |n| {
        let claim = |at: u64| SaltClaim {
            bucket: 30_000_000,
            digest: (u64::from(n) * 64 + at).to_be_bytes(),
        };
        let claims: Vec<SaltClaim> = (0..64).map(claim).collect();
        operator.call(|store| Box::pin(async move { store.claim_salts(&claims).await }))?;
        Ok(())
    })?;
    run(
        "a snapshot, per user",
        5.min(extent.calls),
        count,
        &mut |_| {
            operator.call(|store| store.snapshot())?;
            Ok(())
        },
    )?;
    for (row, bytes) in [
        ("a user", costs.user_bytes),
        ("a user's usage in a period", costs.usage_bytes),
    ] {
        record(MEMORY, row, Ok(vec![whole_figure(STORE_MEMORY, bytes)]));
    }
    Ok(costs)
}

fn per(bytes: u64, count: u32) -> f64 {
    bytes as f64 / f64::from(count.max(1))
}

struct CallCost {
    cpu_micros: f64,
    /// Time of a call, in milliseconds.
    p50: f64,
    p99: f64,
}

/// Calls the store again and again; returns the CPU time of its process per call, and the time of a call.
fn measure_calls(
    process: u32,
    calls: u32,
    call: &mut dyn FnMut(u32) -> Result<()>,
) -> Result<CallCost> {
    let calls = calls.max(2);
    let mut times = Vec::new();
    let before = cpu_time(process)?;
    for number in 0..calls {
        let start = Instant::now();
        call(number)?;
        times.push(start.elapsed().as_secs_f64() * 1000.0);
    }
    let used = cpu_time(process)? - before;
    times.sort_by(f64::total_cmp);
    let share = |percent: usize| times.get((times.len() - 1) * percent / 100).copied();
    Ok(CallCost {
        cpu_micros: used.as_secs_f64() * 1e6 / f64::from(calls),
        p50: share(50).unwrap_or(f64::NAN),
        p99: share(99).unwrap_or(f64::NAN),
    })
}
