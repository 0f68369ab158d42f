//! Root privileges for a test that was not started as root.

use std::env;
use std::process::Command;

/// Returns true if the calling test may go on, because it runs as root. Otherwise the test, named
/// by its path in the test binary, has already run in another process as root of its own user
/// namespace.
///
/// # Panics
/// Panics if the test failed there, or if user namespaces are unavailable.
#[must_use]
pub fn run_as_root(test: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let own = env::current_exe();
    let own = own.unwrap_or_else(|why| panic!("cannot find the test binary: {why}"));
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--"]).arg(own);
    command.args(["--exact", test, "--nocapture"]);
    let ended = command.output();
    let ended = ended.unwrap_or_else(|why| panic!("cannot start `unshare`: {why}"));
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && told.contains("1 passed"),
        "`{test}` failed as root of a user namespace: {told}\n{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    false
}
