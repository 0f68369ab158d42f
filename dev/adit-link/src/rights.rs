//! The rights of root for a test that nobody started as root.

use std::env;
use std::process::Command;

/// Whether the calling test, whose path in its binary this is, may go on: it runs as root. If not,
/// it has run as root of a user namespace of its own, in another process.
///
/// # Panics
/// If the test failed there, or there are no user namespaces here.
#[must_use]
pub fn as_root(test: &str) -> bool {
    if rustix::process::geteuid().is_root() {
        return true;
    }
    let own = env::current_exe();
    let own = own.unwrap_or_else(|why| panic!("where is the test? {why}"));
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--"]).arg(own);
    command.args(["--exact", test, "--nocapture"]);
    let ended = command.output();
    let ended = ended.unwrap_or_else(|why| panic!("cannot start `unshare`: {why}"));
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && told.contains("1 passed"),
        "`{test}` as root of a user namespace: {told}\n{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    false
}
