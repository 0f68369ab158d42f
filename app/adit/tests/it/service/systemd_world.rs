//! systemd as process 1 of its own namespaces, on the files of this machine.
//!
//! Only root can start it. /etc is a copy that is discarded, /run, /var/lib and the folders of units are empty but for
//! [`UNITS`], and the control groups are below one that the end removes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use adit_interop::ChildProcess;
use adit_interop::external_tools::{self, ToolOutput};
use adit_link::NetworkNamespace;

use crate::setup::bin;

const LIMIT: Duration = Duration::from_secs(100);

/// The units that those of adit and systemd itself refer to.
const UNITS: [&str; 9] = [
    "basic.target",
    "default.target",
    "exit.target",
    "multi-user.target",
    "network-online.target",
    "nss-lookup.target",
    "shutdown.target",
    "sysinit.target",
    "umount.target",
];

/// Prepares the files, and becomes systemd. `$1` is the program, `$2` the list of units.
const START: &str = r#"
mount --make-rprivate /
mount -t tmpfs tmpfs /run
mkdir -p /run/etc/upper /run/etc/work /run/systemd/system
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work /etc
# Generators would make units of the init scripts of this machine, and start them.
for folder in /var/lib /usr/local/bin /etc/systemd/system /usr/lib/systemd/system /usr/lib/systemd/user \
    /usr/lib/systemd/system-generators; do
    mount -t tmpfs -o mode=755 tmpfs "$folder"
done
for unit in $2; do
    printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' "$unit" |
        tee "/usr/lib/systemd/system/$unit" > "/usr/lib/systemd/user/$unit"
done
touch /usr/local/bin/adit
mount --bind "$1" /usr/local/bin/adit
umount --recursive /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
export container=adit-test
exec /usr/lib/systemd/systemd --system --unit=multi-user.target --log-target=console --log-level=info
"#;

/// The user's service manager, as a service of the system.
const USER_MANAGER: &str = "\
[Service]
Type=notify
Delegate=yes
Environment=XDG_RUNTIME_DIR=/run/user/0 HOME=/run/home
ExecStartPre=/bin/mkdir -p /run/user/0 /run/home
ExecStart=/usr/lib/systemd/systemd --user --unit=default.target
";

/// The namespaces, which end with this value.
pub(crate) struct SystemdWorld {
    /// `unshare`, whose child is systemd.
    parent: ChildProcess,
    /// systemd, as this process sees it.
    id: u32,
    /// The folder of the control group.
    group: PathBuf,
}

impl SystemdWorld {
    /// Starts systemd. Returns `None` without root.
    pub(crate) fn start() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("only root can start another systemd");
            return None;
        }
        let group = create_group();
        let mut command = Command::new("sh");
        let enter = "echo $$ > \"$0/cgroup.procs\" && exec \"$@\"";
        command.args(["-c", enter]).arg(&group).arg("unshare");
        for kind in ["mount", "pid", "uts", "ipc", "net", "cgroup"] {
            command.arg(format!("--{kind}"));
        }
        command
            .args([
                "--fork",
                "--mount-proc",
                "--kill-child",
                "sh",
                "-ec",
                START,
                "sh",
            ])
            .arg(bin())
            .arg(UNITS.join(" "));
        let parent = ChildProcess::spawn(command).unwrap();
        let mut world = Self {
            parent,
            id: 0,
            group,
        };
        world.wait_until("systemd does not start", || world.child().is_some());
        world.id = world.child().unwrap();
        world.wait_until("systemd is not ready", || {
            let state = world.try_run(&["systemctl", "is-active", "multi-user.target"]);
            state.output.trim() == "active"
        });
        Some(world)
    }

    /// Returns the process ID of the child that is process 1.
    fn child(&self) -> Option<u32> {
        let id = self.parent.id();
        let text = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    }

    /// Runs a program beside systemd.
    #[track_caller]
    pub(crate) fn try_run(&self, words: &[&str]) -> ToolOutput {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--target={}", self.id))
            .args(["--all", "--wd=/", "--"])
            .args(words)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("DBUS_SESSION_BUS_ADDRESS");
        external_tools::run_to_end(command, LIMIT).unwrap()
    }

    /// Runs a program that succeeds, and returns its output.
    #[track_caller]
    pub(crate) fn run(&self, words: &[&str]) -> String {
        let ended = self.try_run(words);
        assert_eq!(
            ended.code,
            Some(0),
            "{words:?}: {}\n{}",
            ended.output,
            self.parent.output()
        );
        ended.output
    }

    /// Runs a script of a shell that succeeds, and returns its output.
    #[track_caller]
    pub(crate) fn sh(&self, script: &str) -> String {
        self.run(&["sh", "-ec", script])
    }

    pub(crate) fn adit(&self, words: &[&str]) -> ToolOutput {
        self.try_run(&[&["adit"], words].concat())
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let script = "mkdir -p \"$(dirname \"$1\")\" && printf %s \"$2\" > \"$1\"";
        self.run(&["sh", "-c", script, "sh", path, text]);
    }

    /// Returns the status of an HTTP proxy for a port where nothing listens: `502`, or `000` if there is no proxy.
    pub(crate) fn proxy_answer(&self, port: u16) -> String {
        let proxy = format!("http://127.0.0.1:{port}");
        let words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-x"];
        let words = [&words[..], &[&proxy, "http://192.0.2.1:9/"]].concat();
        self.try_run(&words).output.trim().to_owned()
    }

    /// Returns the network of the services.
    pub(crate) fn network(&self) -> NetworkNamespace {
        NetworkNamespace::open(format!("/proc/{}/ns/net", self.id)).unwrap()
    }

    pub(crate) fn start_user_manager(&self) {
        self.write("/etc/systemd/system/user-manager.service", USER_MANAGER);
        self.run(&["systemctl", "start", "user-manager"]);
    }

    /// Runs a program in the session of the user's service manager.
    pub(crate) fn as_user(&self, words: &[&str]) -> ToolOutput {
        let session = ["env", "XDG_RUNTIME_DIR=/run/user/0", "HOME=/run/home"];
        self.try_run(&[&session[..], words].concat())
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, failure: &str, done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(
                start.elapsed() < LIMIT,
                "{failure}: {}",
                self.parent.output()
            );
            sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for SystemdWorld {
    fn drop(&mut self) {
        // With process 1 all others of its namespace end.
        if let Some(id) = self.child().and_then(|id| i32::try_from(id).ok())
            && let Some(id) = rustix::process::Pid::from_raw(id)
        {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
        let _ = self.parent.wait(LIMIT);
        let start = Instant::now();
        // A group can be removed once the kernel has forgotten its processes.
        while !remove_group(&self.group) && start.elapsed() < LIMIT {
            sleep(Duration::from_millis(50));
        }
    }
}

/// Creates a control group below that of this process, in the unified hierarchy.
fn create_group() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = mount.into_iter().find_map(|parts| match parts.as_slice() {
        [_, at, "cgroup2", ..] => Some((*at).to_owned()),
        _ => None,
    });
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .unwrap();
    let name = format!(
        "adit-test-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let name = name.replace(['(', ')'], "");
    let group = PathBuf::from(mount.expect("no control groups of version 2"))
        .join(own)
        .join(name);
    fs::create_dir(&group).unwrap();
    group
}

/// Removes a control group and those below it. Returns true if it is gone.
fn remove_group(group: &PathBuf) -> bool {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_group(&entry.path());
        }
    }
    fs::remove_dir(group).is_ok() || !group.exists()
}
