//! Limits that belong to the process, not to an engine in it.

use std::env;
use std::process::Command;

use adit_net::limits::nofile_limit;

use crate::world::start;

/// Set in the process with the lowered limit, because all other tests share one process.
const LOWERED: &str = "ADIT_TEST_LOWERED_LIMIT";
const LIMIT: u64 = 300;

#[tokio::test]
async fn the_descriptor_limit_stays_as_it_is() {
    if env::var_os(LOWERED).is_none() {
        let own = format!(
            "ulimit -S -n {LIMIT} && exec \"$0\" --exact limits::the_descriptor_limit_stays_as_it_is"
        );
        let mut again = Command::new("sh");
        again.args(["-c", &own]).arg(env::current_exe().unwrap());
        let output = again.env(LOWERED, "1").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && told.contains("1 passed"),
            "{output:?}"
        );
        return;
    }
    assert_eq!(nofile_limit(), LIMIT);
    let (engine, _) = start(&["mixed://127.0.0.1:0"]).await;
    assert_eq!(
        nofile_limit(),
        LIMIT,
        "the host program did not ask for more"
    );
    engine.drain_and_stop(std::time::Duration::ZERO).await;
}
