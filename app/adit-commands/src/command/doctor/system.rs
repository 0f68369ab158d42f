//! Features that adit lacks on the system that it runs on.

use super::step::{CheckResult, CheckState, DoctorReport};

/// Features that exist on Linux alone.
const LINUX_ONLY: &str = "redir:// and tproxy:// listeners, `adit upgrade`, the interface of ss-* programs (-i), and \
                          copying in the kernel (splice)";
/// Features that exist on Unix alone.
const UNIX_ONLY: &str = "`adit sshd`, scp and sftp, `adit ssh -f`, Unix sockets (the API has named pipes), \
                         another user and the background for ss-* programs (-a, -f), and reloading by SIGHUP (the \
                         API reloads)";

/// Adds a step that names what is missing, except on Linux, which lacks nothing.
pub(super) fn examine_system(report: &mut DoctorReport) {
    if let Some(missing) = missing_on(std::env::consts::OS) {
        report.add_step(CheckResult::new("system", CheckState::Skipped, missing));
    }
}

fn missing_on(system: &str) -> Option<String> {
    match system {
        "linux" | "android" => None,
        "windows" => Some(format!(
            "not available on Windows: {LINUX_ONLY}; {UNIX_ONLY}"
        )),
        other => Some(format!("not available on {other}: {LINUX_ONLY}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_has_its_list() {
        assert_eq!(missing_on("linux"), None);
        let [windows, macos] = ["windows", "macos"].map(|system| missing_on(system).unwrap());
        assert!(
            windows.contains("redir://") && windows.contains("sshd"),
            "{windows}"
        );
        assert!(
            macos.starts_with("not available on macos: redir://"),
            "{macos}"
        );
        assert!(!macos.contains("sshd"), "{macos}");
    }
}
