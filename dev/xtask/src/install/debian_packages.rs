//! The Debian packages that the tests and benchmarks need.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::command::{CommandRun, find_program};
use crate::privilege::{has_privilege, privileged};

/// Required commands, each with the Debian package that provides it.
pub(super) const TOOLS: &[(&str, &str)] = &[
    ("curl", "curl"),
    ("dig", "dnsutils"),
    ("dbclient", "dropbear-bin"),
    ("dropbear", "dropbear-bin"),
    ("dropbearconvert", "dropbear-bin"),
    ("plink", "putty-tools"),
    ("puttygen", "putty-tools"),
    ("haproxy", "haproxy"),
    ("redis-server", "redis-server"),
    ("redis-cli", "redis-tools"),
    ("unbound", "unbound"),
    ("iperf3", "iperf3"),
    ("openssl", "openssl"),
    ("rsync", "rsync"),
    ("lftp", "lftp"),
    ("sshfs", "sshfs"),
    ("fusermount3", "fuse3"),
    ("git", "git"),
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("firefox-esr", "firefox-esr"),
    ("chromium", "chromium"),
    ("npm", "npm"),
    ("zbarimg", "zbar-tools"),
    ("faketime", "faketime"),
    ("g++", "g++"),
    ("ss-server", "shadowsocks-libev"),
    ("ss-local", "shadowsocks-libev"),
    ("ss-tunnel", "shadowsocks-libev"),
    ("obfs-local", "simple-obfs"),
    ("obfs-server", "simple-obfs"),
    ("ss-v2ray-plugin", "shadowsocks-v2ray-plugin"),
    ("kcptun-client", "kcptun"),
    ("kcptun-server", "kcptun"),
    ("go", "golang-go"),
    ("ssh", "openssh-client"),
    ("sftp", "openssh-client"),
    ("ssh-keygen", "openssh-client"),
    ("sshd", "openssh-server"),
    ("strace", "strace"),
    ("ip", "iproute2"),
    ("man", "man-db"),
    ("nc", "netcat-openbsd"),
    ("ping", "iputils-ping"),
    ("script", "bsdutils"),
    ("tmux", "tmux"),
    ("modprobe", "kmod"),
    ("sysctl", "procps"),
    ("iptables", "iptables"),
    ("nft", "nftables"),
    ("valgrind", "valgrind"),
    ("shellcheck", "shellcheck"),
    ("systemd-analyze", "systemd"),
    ("gsettings", "libglib2.0-bin"),
    ("kwriteconfig5", "libkf5config-bin"),
    ("python3", "python3-venv"),
    ("prometheus", "prometheus"),
    ("promtool", "prometheus"),
];

/// The same, for commands that only benchmarks need.
pub(super) const BENCH_TOOLS: &[(&str, &str)] = &[
    ("danted", "dante-server"),
    ("microsocks", "microsocks"),
    ("perf", "linux-perf"),
];

/// Required libraries, below the folder of the machine's architecture, and other files, each with its Debian package.
const LIBRARIES: &[(&str, &str)] = &[
    // asyncssh supports UMAC only with this library.
    ("libnettle.so.8", "libnettle8"),
    ("libnss_wrapper.so", "libnss-wrapper"),
    ("libssh2.so.1", "libssh2-1"),
    // Without a font that has Chinese, pictures of the dashboard show boxes.
    (
        "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",
        "fonts-wqy-microhei",
    ),
];

/// Packages that start a service when they are installed.
const SERVICES: [(&str, &str); 6] = [
    ("prometheus", "prometheus"),
    ("dante-server", "danted"),
    ("haproxy", "haproxy"),
    ("redis-server", "redis-server"),
    ("shadowsocks-libev", "shadowsocks-libev"),
    ("openssh-server", "ssh"),
];

/// Installs the Debian packages of commands, and of the libraries that the tests need.
pub(super) fn install_packages(tools: &[(&str, &'static str)]) -> Result<String> {
    install_tools_and_libraries(tools, LIBRARIES)
}

/// Installs the Debian packages of commands, without the libraries that the tests need.
pub(crate) fn install_tools(tools: &[(&str, &'static str)]) -> Result<String> {
    install_tools_and_libraries(tools, &[])
}

fn install_tools_and_libraries(
    tools: &[(&str, &'static str)],
    libraries: &[(&str, &'static str)],
) -> Result<String> {
    let has_tool = |tool: &str| find_program(tool).is_some();
    let missing = missing_packages(tools, libraries, has_tool, has_library);
    if missing.is_empty() {
        return Ok("present".to_owned());
    }
    let words = missing.join(" ");
    if find_program("apt-get").is_none() || !has_privilege() {
        bail!(
            "packages are missing; as root, run:\n  apt-get update && apt-get install -y \
             --no-install-recommends {words}"
        );
    }
    // A stale index fails at the installation, not here: the packages may be in the cache.
    let _ = privileged_command("apt-get", &["update"])?.run_captured("apt-update");
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(&missing);
    privileged_command("apt-get", &install)?
        .with_limit(15)
        .run_captured("apt-install")?;
    for (package, service) in SERVICES {
        if missing.contains(&package) {
            stop_service(service);
        }
    }
    for (name, package) in tools.iter().chain(libraries) {
        ensure!(
            find_program(name).is_some() || has_library(name),
            "`{name}` is still missing after `{package}`"
        );
    }
    Ok(format!("installed {words}"))
}

/// Returns true if the system has this library, or the file with this absolute path.
fn has_library(name: &str) -> bool {
    if name.starts_with('/') {
        return Path::new(name).is_file();
    }
    let places = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    places
        .into_iter()
        .any(|place| place.path().join(name).is_file())
}

/// Returns the packages of missing tools and libraries, each once.
fn missing_packages(
    tools: &[(&str, &'static str)],
    libraries: &[(&str, &'static str)],
    tool: impl Fn(&str) -> bool,
    library: impl Fn(&str) -> bool,
) -> Vec<&'static str> {
    let tools = tools.iter().filter(|(name, _)| !tool(name));
    let libraries = libraries.iter().filter(|(name, _)| !library(name));
    let mut names: Vec<&str> = tools
        .chain(libraries)
        .map(|(_, package)| *package)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns a command with the rights of root that asks no questions.
fn privileged_command(program: &str, args: &[&str]) -> Result<CommandRun> {
    privileged(
        "env",
        &[&["DEBIAN_FRONTEND=noninteractive", program], args].concat(),
    )
}

/// Stops a service that Debian starts on installation; without a service manager there is nothing to stop.
fn stop_service(name: &str) {
    let stop = match Path::new("/run/systemd/system").is_dir() {
        true => privileged_command("systemctl", &["disable", "--now", name]),
        false => privileged_command("service", &[name, "stop"]),
    };
    let _ = stop.and_then(|run| run.run_captured("stop-service"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_named_and_once() {
        let missing = |tool: fn(&str) -> bool, library: fn(&str) -> bool| {
            missing_packages(TOOLS, LIBRARIES, tool, library)
        };
        assert!(missing(|_| true, |_| true).is_empty());
        assert_eq!(
            missing(|tool| !tool.starts_with("ss-"), |_| true),
            ["shadowsocks-libev", "shadowsocks-v2ray-plugin"]
        );
        assert_eq!(
            missing(|_| true, |_| false),
            [
                "fonts-wqy-microhei",
                "libnettle8",
                "libnss-wrapper",
                "libssh2-1"
            ]
        );
        assert!(missing(|_| false, |_| true).contains(&"golang-go"));
    }
}
