//! The machines of the documentation, each in a network namespace, under the names that the pages use.
//!
//! ```text
//! home 9.9.9.2 ─┐         ┌─ web 9.9.9.4: example.com, provider.example …; name servers 9.9.9.9 and 1.1.1.1
//!  vps 9.9.9.3 ─┼─ switch ┼─ gate 9.9.9.5 and 10.66.0.5: host.example, gate.example …
//!               │         └─ inner 10.66.0.6 and 9.9.9.6: inner.lan, db.lan …
//! laptop 192.168.1.2 ── lan0 of home
//! ```
//!
//! They share one file system, in which `/etc`, `/srv`, `/var/lib`, `/usr/local/bin` and `/run` are in memory and end with the
//! test, and one user, `me`. Every machine starts its commands in a folder of its own; that of `vps` and
//! `gate` is the user's home.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use adit_interop::ChildProcess;
use adit_interop::dns_server::{DnsReply, DnsServer};
use adit_interop::external_tools::{self, ToolOutput};
use adit_interop::openssh::create_run_folder;
use adit_interop::origin::OriginServer;
use adit_link::NetworkNamespace;

use crate::netns::{command, enter, sh};
use crate::setup::bin;

/// The home of the user.
pub(crate) const HOME: &str = "/run/home";
/// A command of the documentation ends within this time, on a slow machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Addresses and routes, as a script.
const NETWORK: &str = "
mkdir -p /run/netns
for name in switch home vps web gate inner laptop; do
    ip netns add $name
    ip -n $name link set lo up
done
ip -n switch link add br0 type bridge forward_delay 0
ip -n switch link set br0 up
plug() {
    ip -n $1 link add eth0 type veth peer name $1 netns switch
    ip -n switch link set $1 master br0 up
    ip -n $1 link set eth0 up
    shift
}
for name in home vps web gate inner; do plug $name; done
ip -n home addr add 9.9.9.2/24 dev eth0
ip -n vps addr add 9.9.9.3/24 dev eth0
ip -n web addr add 9.9.9.4/24 dev eth0
ip -n web addr add 9.9.9.9/24 dev eth0
ip -n web addr add 1.1.1.1/32 dev eth0
ip -n gate addr add 9.9.9.5/24 dev eth0
ip -n gate addr add 10.66.0.5/24 dev eth0
ip -n inner addr add 10.66.0.6/24 dev eth0
ip -n inner addr add 9.9.9.6/24 dev eth0
ip -n home link add lan0 type veth peer name eth0 netns laptop
ip -n home link set lan0 up
ip -n home addr add 192.168.1.1/24 dev lan0
ip -n laptop link set eth0 up
ip -n laptop addr add 192.168.1.2/24 dev eth0
ip -n laptop route add default via 192.168.1.1
for name in home vps gate; do ip -n $name route add 1.1.1.1/32 dev eth0; done
";

/// The names of the pages and their addresses.
const NAMES: &str = "\
127.0.0.1 localhost
9.9.9.2 home
9.9.9.3 vps.example vps vpn.example.com
9.9.9.4 example.com www.example.com bing.com a.example provider.example
9.9.9.5 host.example host gate.example gate next one HOST
9.9.9.6 two
10.66.0.6 inner.lan db.lan db.internal
";

/// Folders in memory, with the settings of the machine, and the user `me`, who is the first with the number of
/// root. Files of `/etc` that root of a user namespace cannot read are not needed.
const FILES: &str = "
mkdir -p /run/etc /run/home/.ssh /run/bin
cp -a /etc/. /run/etc 2> /run/not-copied || true
mount --bind /run/etc /etc
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /srv
mount -t tmpfs tmpfs /usr/local/bin
{ echo 'me:x:0:0:me:/run/home:/bin/sh'; echo 'adit:x:4242:4242::/run/home:/bin/sh'; cat /run/etc/passwd; } > /run/passwd
cp /run/passwd /etc/passwd
rm -f /etc/ssh/ssh_host_* /etc/ssh/sshd_config.d/*
rm -f /etc/resolv.conf
echo 'nameserver 9.9.9.9' > /etc/resolv.conf
chmod 700 /run/home /run/home/.ssh
cd /run
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=authority' \
    -keyout authority.key -out authority.crt
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=site \
    -CA authority.crt -CAkey authority.key -addext basicConstraints=critical,CA:FALSE \
    -addext subjectAltName=DNS:example.com,DNS:provider.example -keyout site.key -out site.crt
cat site.crt site.key > site.pem
cat authority.crt >> /etc/ssl/certs/ca-certificates.crt
";

/// A `cargo` for the commands of a page, which starts programs that have been built with the test.
const CARGO: &str = r#"#!/bin/sh
case "$1 $2 $3" in
"run --release --") shift 3; exec adit "$@" ;;
esac
[ "$1 $2" = "run -p" ] || { echo "cargo $*: not a command of the documentation" >&2; exit 1; }
program=$3; shift 3
[ "$1" = --bin ] && { program=$2; shift 2; }
[ "$1" = -- ] || { echo "no -- before the arguments" >&2; exit 1; }
shift
[ -x "$BUILT/$program" ] || { echo "$program is missing: run cargo build --workspace" >&2; exit 1; }
exec "$BUILT/$program" "$@"
"#;

/// One machine.
#[derive(Debug)]
pub(crate) struct Host {
    name: &'static str,
    folder: PathBuf,
}

/// All machines, and the servers that every page may use.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) home: Host,
    pub(crate) vps: Host,
    pub(crate) web: Host,
    pub(crate) gate: Host,
    pub(crate) inner: Host,
    pub(crate) laptop: Host,
}

impl Hosts {
    /// Creates the machines in the namespaces of this process. The site of `web` does not run yet.
    pub(crate) fn create() -> Self {
        sh(&format!("set -e\n{FILES}"));
        sh(&format!("set -e\n{NETWORK}"));
        fs::write("/etc/hosts", NAMES).unwrap();
        symlink(bin(), "/usr/local/bin/adit").unwrap();
        write_program("/usr/local/bin/cargo", CARGO);
        // The machine may have no sudo, and everything here runs as root.
        write_program("/usr/local/bin/sudo", "#!/bin/sh\nexec \"$@\"\n");
        let host = |name, folder: &str| {
            fs::create_dir_all(folder).unwrap();
            let folder = PathBuf::from(folder);
            Host { name, folder }
        };
        Self {
            home: host("home", "/run/work/home"),
            vps: host("vps", HOME),
            web: host("web", "/run/work/web"),
            gate: host("gate", HOME),
            inner: host("inner", "/run/work/inner"),
            laptop: host("laptop", "/run/work/laptop"),
        }
    }

    /// Starts the web server of all sites, with these files: the beginning of a path, and the content. Any other
    /// page is a greeting.
    pub(crate) fn start_sites(&self, files: &[(&str, &str)]) -> ChildProcess {
        self.web.start_site(":443 ssl crt /run/site.pem", files)
    }

    /// Starts both name servers: every name but that of the VPS has the address of `web`.
    pub(crate) fn start_name_servers(&self) -> [DnsServer; 2] {
        ["9.9.9.9:53", "1.1.1.1:53"].map(|addr| {
            let addr: SocketAddr = addr.parse().unwrap();
            let reply = |name: &str| {
                let last = if name.starts_with("vps") { 3 } else { 4 };
                DnsReply::Address([9, 9, 9, last].into(), 60)
            };
            enter("web", || DnsServer::start_at(addr, reply).unwrap())
        })
    }

    /// Prepares SSH: a key of the user, one of all machines (also for adit as the server), and known hosts. Starts OpenSSH's server on the
    /// machines with these names, and ports.
    pub(crate) fn start_ssh(&self, on: &[(&Host, u16)]) -> Vec<ChildProcess> {
        create_run_folder();
        sh("set -e
            ssh-keygen -q -t ed25519 -N '' -C host -f /etc/ssh/ssh_host_ed25519_key
            ssh-keygen -q -t ed25519 -N '' -C me -f /run/home/.ssh/id_ed25519
            cp /run/home/.ssh/id_ed25519.pub /run/home/.ssh/authorized_keys
            printf '%s ' '*' > /run/home/.ssh/known_hosts
            cat /etc/ssh/ssh_host_ed25519_key.pub >> /run/home/.ssh/known_hosts
            mkdir -p -m 700 /run/home/.local/state/adit
            cp /etc/ssh/ssh_host_ed25519_key* /run/home/.local/state/adit/");
        let start = |(host, port): &(&Host, u16)| {
            let folder = host.folder.display();
            let line = format!(
                "/usr/sbin/sshd -D -e -f /dev/null -p {port} -o PermitRootLogin=yes -o UsePAM=no -o PidFile=none \
                 -o StrictModes=no -o 'Subsystem=sftp internal-sftp -d {folder}'"
            );
            host.start_until(&line, "Server listening on 0.0.0.0", 1)
        };
        on.iter().map(start).collect()
    }
}

impl Host {
    /// Returns the path of a file in the folder of the machine.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file that only its owner can read.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    }

    /// Returns the content of a file.
    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }

    fn shell(&self, script: &str) -> Command {
        let mut shell = command(self.name, &["sh", "-c", script]);
        shell.current_dir(&self.folder).env_clear().envs([
            (
                "PATH",
                "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin",
            ),
            ("HOME", HOME),
            ("USER", "me"),
            ("LOGNAME", "me"),
            ("TERM", "dumb"),
            ("LANG", "C.UTF-8"),
        ]);
        shell.env("BUILT", bin().parent().unwrap());
        shell
    }

    /// Runs commands to their end, and returns their output, of both kinds.
    pub(crate) fn try_run(&self, script: &str) -> ToolOutput {
        external_tools::run_to_end(self.shell(&format!("set -e\n{script}")), LIMIT).unwrap()
    }

    /// Runs commands, which must succeed.
    pub(crate) fn run(&self, script: &str) -> String {
        let done = self.try_run(script).expect_success();
        done.unwrap_or_else(|why| panic!("{}$ {script}\n{why:#}", self.name))
    }

    /// Starts a command that goes on, and waits until it listens.
    pub(crate) fn start(&self, line: &str) -> ChildProcess {
        let listeners = line.matches("-L ").count().max(1);
        self.start_until(line, "listening on ", listeners)
    }

    /// Starts a command that goes on, and waits until it has printed these words `count` times. Lines before
    /// the last one are commands that end.
    pub(crate) fn start_until(&self, line: &str, words: &str, count: usize) -> ChildProcess {
        let script = match line.rsplit_once('\n') {
            Some((before, last)) => format!("{before}\nexec {last}"),
            None => format!("exec {line}"),
        };
        let mut started = ChildProcess::spawn(self.shell(&script)).unwrap();
        let found = started.wait_lines(words, count, LIMIT);
        found.unwrap_or_else(|why| panic!("{}$ {line}\n{why:#}", self.name));
        started
    }

    /// Starts a command that goes on as if it were typed at a terminal.
    pub(crate) fn start_on_terminal(&self, line: &str, words: &str) -> ChildProcess {
        let quoted = line.replace('\'', "'\\''");
        self.start_until(&format!("script -qfec 'exec {quoted}' /dev/null"), words, 1)
    }

    /// Starts a web server on port 80 and, with this line of HAProxy's `bind`, on another port.
    pub(crate) fn start_site(&self, bind: &str, files: &[(&str, &str)]) -> ChildProcess {
        let mut config = format!(
            "global\n  tune.bufsize 200000\ndefaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  \
             timeout connect 60s\nfrontend site\n  bind :80\n  bind {bind}\n"
        );
        for (number, (path, content)) in files.iter().enumerate() {
            let file = format!("site-{number}");
            self.write(&file, content);
            let file = self.path(&file);
            config.push_str(&format!(
                "  http-request return status 200 content-type text/plain file {} if {{ path_beg {path} }}\n",
                file.display()
            ));
        }
        config.push_str(
            "  http-request return status 200 content-type text/plain lf-string \"hello from %[req.hdr(host)]\\n\"\n",
        );
        self.write("site.cfg", &config);
        self.start_haproxy("site.cfg", 80)
    }

    /// Starts HAProxy with a configuration file, and waits until it listens on a port.
    pub(crate) fn start_haproxy(&self, file: &str, port: u16) -> ChildProcess {
        let started = ChildProcess::spawn(self.shell(&format!("exec haproxy -db -f {file}")));
        let started = started.unwrap();
        self.wait_for_port(port, &started);
        started
    }

    /// Waits until a program listens on a TCP port of this machine.
    pub(crate) fn wait_for_port(&self, port: u16, program: &ChildProcess) {
        let wait = || adit_interop::wait_port(adit_interop::Transport::Tcp, port, LIMIT);
        self.inside(|| wait().unwrap_or_else(|why| panic!("{why:#}\n{}", program.output())));
    }

    /// Starts a server that treats streams as their first line says, and echoes datagrams.
    pub(crate) fn start_origin(&self, addr: &str) -> OriginServer {
        let addr: SocketAddr = addr.parse().unwrap();
        self.inside(|| OriginServer::start_at(addr).unwrap())
    }

    /// Runs work in the network namespace of this machine. Sockets that it opens stay there.
    pub(crate) fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        NetworkNamespace::open(Path::new("/run/netns").join(self.name))
            .unwrap()
            .run_inside(work)
    }

    /// Asserts that a proxy of this machine reaches a web server.
    pub(crate) fn browses(&self, proxy: &str) {
        let page = self.run(&format!("curl -sS -m 40 -x {proxy} http://example.com/"));
        assert_eq!(page, "hello from example.com", "through {proxy}");
    }
}

/// Writes a script that the commands of all machines may start.
pub(super) fn write_program(path: &str, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}
