//! Measures what the documentation of the crate says about costs.

use std::sync::Arc;
use std::time::Instant;

use adit_fleet::{
    ChangeId, Feed, FleetUser, PeriodLabel, SaltClaim, Store, UsageBatch, UserActivity, UserUsage,
};
use adit_interop::store_server::StoreServer;

use crate::world::{cipher, user, writer};

/// Number of users.
const USERS: u32 = 10_000;

/// Returns the processor time of the server, in microseconds.
fn server_time(server: &StoreServer) -> f64 {
    let text = server.run(&["INFO", "cpu"]).unwrap();
    let field = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.trim().parse::<f64>().unwrap() * 1e6
    };
    field("used_cpu_user:") + field("used_cpu_sys:")
}

/// Calls `call` this number of times, and prints the time of a call and of the server.
async fn measure<F: Future<Output = ()>>(
    what: &str,
    server: &StoreServer,
    count: u32,
    mut call: impl FnMut(u32) -> F,
) {
    let (busy, since) = (server_time(server), Instant::now());
    for n in 0..count {
        call(n).await;
    }
    let each = since.elapsed().as_secs_f64() * 1e6 / f64::from(count);
    let busy = (server_time(server) - busy) / f64::from(count);
    println!("{what}: {each:.1} us a call, {busy:.1} us of the server");
}

/// Prints the costs of all calls that nodes make often.
pub(crate) async fn print_costs(server: &StoreServer, store: &Arc<dyn Store>) {
    let memory = server.info("used_memory").unwrap();
    let mut users: Vec<FleetUser> = (0..USERS).map(|n| user(&format!("user-{n:05}"))).collect();
    let since = Instant::now();
    writer(store).add(&mut users).await.unwrap();
    println!("adding {USERS} users: {:?}", since.elapsed());
    let each = (server.info("used_memory").unwrap() - memory) / u64::from(USERS);
    println!("memory of the server: {each} bytes a user, including the log");
    let since = Instant::now();
    let snapshot = store.snapshot().await.unwrap();
    println!("snapshot of {USERS} users: {:?}", since.elapsed());
    let since = Instant::now();
    let mut feed = Feed::new(cipher());
    feed.apply_snapshot(&snapshot, false);
    println!("opening {} users: {:?}", feed.len(), since.elapsed());
    let head = ChangeId(store.head().await.unwrap().0);
    measure("head", server, 2000, |_| async {
        assert_eq!(store.head().await.unwrap(), head);
    })
    .await;
    let period = PeriodLabel::from_text("2026-11").unwrap();
    for size in [1, 100, 1000] {
        let entry = |user| UserUsage {
            user,
            period: period.clone(),
            up: 10,
            down: 1000,
        };
        let entries: Vec<UserUsage> = (0..size).map(entry).collect();
        measure(&format!("usage of {size}"), server, 200, |n| {
            let number = u64::from(size) * 1000 + u64::from(n);
            let batch = UsageBatch {
                number,
                entries: entries.clone(),
            };
            async move { assert!(store.add_usage(1, &batch).await.unwrap().applied) }
        })
        .await;
    }
    for size in [1u32, 16, 512] {
        measure(&format!("salts of {size}"), server, 200, |n| {
            let claim = |at: u32| {
                let mut digest = [0; 8];
                digest[..4].copy_from_slice(&(n * 512 + at).to_be_bytes());
                digest[4..].copy_from_slice(&size.to_be_bytes());
                SaltClaim {
                    bucket: 30_000_000,
                    digest,
                }
            };
            let claims: Vec<SaltClaim> = (0..size).map(claim).collect();
            async move {
                assert!(
                    store
                        .claim_salts(&claims)
                        .await
                        .unwrap()
                        .iter()
                        .all(|new| *new)
                );
            }
        })
        .await;
    }
    for size in [1, 100] {
        let report = |user| UserActivity {
            user,
            sessions: 3,
            max_devices: Some(5),
            devices: vec![[1; 8], [2; 8]],
            gone: Vec::new(),
        };
        let reports: Vec<UserActivity> = (0..size).map(report).collect();
        measure(&format!("activity of {size}"), server, 200, |_| async {
            store.report_activity(1, &reports).await.unwrap();
        })
        .await;
    }
    measure("one user changed", server, 500, |n| {
        let user = users[n as usize].clone();
        async move { writer(store).put(&[user]).await.unwrap() }
    })
    .await;
}
