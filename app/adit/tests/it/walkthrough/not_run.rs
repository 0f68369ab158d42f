//! The commands of the documentation that the walkthroughs do not run, each with the reason.

/// A command that is not run.
#[derive(Debug)]
pub(crate) struct NotRun {
    /// The page.
    pub(crate) page: &'static str,
    /// The beginning of the command.
    pub(crate) begins: &'static str,
    /// The reason, and what tests it instead.
    pub(crate) reason: &'static str,
}

const BUILDS: &str = "compiles adit in another profile, for minutes; the commands after it run with the test's binary";
const BENCHMARKS: &str = "measures for minutes; `tests/it/bench.rs` runs `adit bench` itself";
const SERVICE: &str = "needs systemd as process 1; `tests/it/service.rs` installs, reloads and removes services with it";
const DESKTOP: &str =
    "needs a desktop; `tests/it/system_proxy.rs` changes and restores the settings of several";
const KERNEL: &str = "changes the kernel of the whole machine, outside of every namespace";

/// All of them.
pub(crate) const NOT_RUN: &[NotRun] = &[
    NotRun {
        page: "README.md",
        begins: "cargo xtask test",
        reason: "is what runs this test",
    },
    NotRun {
        page: "docs/benchmarks.md",
        begins: "cargo xtask install --rivals",
        reason: "downloads and compiles",
    },
    NotRun {
        page: "docs/benchmarks.md",
        begins: "cargo xtask bench",
        reason: BENCHMARKS,
    },
    NotRun {
        page: "docs/book/install.md",
        begins: "cargo build --release",
        reason: BUILDS,
    },
    NotRun {
        page: "docs/guides/first.md",
        begins: "cargo build --release",
        reason: BUILDS,
    },
    NotRun {
        page: "docs/guides/first.md",
        begins: "RUSTFLAGS=",
        reason: BUILDS,
    },
    NotRun {
        page: "docs/book/games.md",
        begins: "sudo modprobe tcp_bbr",
        reason: KERNEL,
    },
    NotRun {
        page: "docs/book/games.md",
        begins: "sudo sysctl",
        reason: KERNEL,
    },
    NotRun {
        page: "docs/guides/kcp.md",
        begins: "sudo modprobe tcp_bbr",
        reason: KERNEL,
    },
    NotRun {
        page: "docs/guides/kcp.md",
        begins: "sudo sysctl",
        reason: KERNEL,
    },
    NotRun {
        page: "docs/book/install.md",
        begins: "cargo xtask dist",
        reason: BUILDS,
    },
    NotRun {
        page: "docs/book/install.md",
        begins: "tar tzf target/dist",
        reason: BUILDS,
    },
    NotRun {
        page: "docs/book/platforms.md",
        begins: "cargo xtask",
        reason: BUILDS,
    },
    NotRun {
        page: "docs/book/service.md",
        begins: "sudo adit service",
        reason: SERVICE,
    },
    NotRun {
        page: "docs/book/service.md",
        begins: "adit service",
        reason: SERVICE,
    },
    NotRun {
        page: "docs/book/service.md",
        begins: "sudo adit server url",
        reason: SERVICE,
    },
    NotRun {
        page: "docs/book/service.md",
        begins: "sudo chown",
        reason: SERVICE,
    },
    NotRun {
        page: "docs/book/service.md",
        begins: "sudo chmod",
        reason: SERVICE,
    },
    NotRun {
        page: "docs/book/service.md",
        begins: "adit client - --save",
        reason: SERVICE,
    },
    NotRun {
        page: "docs/book/service.md",
        begins: "adit system-proxy",
        reason: DESKTOP,
    },
];

impl NotRun {
    /// Returns true if this row is about a command of this page.
    pub(crate) fn covers(&self, page: &str, command: &str) -> bool {
        page == self.page && command.starts_with(self.begins)
    }
}
