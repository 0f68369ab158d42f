//! Settings of the kernel: BBR.
//!
//! The congestion control is a setting of a network namespace, and really changes. What is a setting of the whole
//! machine must not: modules are found and not loaded, and the queue discipline is a file in memory, in the place of the
//! kernel's.

use std::net::TcpListener;

use super::Walk;
use super::hosts::{Host, write_program};

/// Starts the real program up to the point where it would load a module.
///
/// A machine without a folder of modules has all of them in its kernel, and no list of them: then the list has the
/// congestion controls that the kernel names.
const MODPROBE: &str = r#"#!/bin/sh
set -e
real=$(PATH=/usr/sbin:/sbin:/usr/bin:/bin command -v modprobe)
release=$(uname -r)
[ -d "/lib/modules/$release" ] && exec "$real" --dry-run "$@"
folder=/run/kernel/lib/modules/$release
mkdir -p "$folder"
: > "$folder/modules.order"
for name in $(cat /proc/sys/net/ipv4/tcp_available_congestion_control); do
    echo "kernel/net/ipv4/tcp_$name.ko"
done > "$folder/modules.builtin"
depmod --basedir /run/kernel "$release"
exec "$real" --dirname /run/kernel --dry-run "$@"
"#;

/// Follows the two commands that turn on BBR.
pub(super) fn turn_on_bbr(host: &Host, walk: &mut Walk) {
    write_program("/usr/local/bin/modprobe", MODPROBE);
    let load = walk.next("sudo modprobe");
    host.run(&load);
    let unknown = host.try_run(&format!("{load}_unknown"));
    assert_ne!(unknown.code, Some(0), "{}", unknown.output);

    host.run(
        "mount -t tmpfs tmpfs /proc/sys/net/core
        echo pfifo_fast > /proc/sys/net/core/default_qdisc
        sysctl net.ipv4.tcp_congestion_control=reno",
    );
    let set = walk.next("sudo sysctl");
    host.run(&set);
    assert_eq!(host.run("sysctl -n net.core.default_qdisc").trim(), "fq");
    // The kernel's own answer, for a new connection of this machine.
    let control = host.inside(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::sockopt::tcp_congestion(&listener).unwrap()
    });
    assert_eq!(control, "bbr");
    // A misspelt setting is an error.
    let unknown = host.try_run(&set.replace("net.core", "net.kore"));
    assert_ne!(unknown.code, Some(0), "{}", unknown.output);
}
