//! `dist`: archives of adit for other machines.
//!
//! Each is built by one command that installs what it needs, and its bytes depend on the sources, the
//! compiler and the time of the commit alone. `target/dist/adit-VERSION-TARGET` is the folder with the
//! contents, the archive is beside it.

mod archive;
mod cross_tools;
mod emulator;
mod openssh;
mod room;
mod sbom;
mod target;
mod transfer;
mod trial;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

pub(crate) use self::archive::hex;
pub(crate) use self::cross_tools::{CrossTools, StandardLibrary};
pub(crate) use self::emulator::Emulator;
pub(crate) use self::target::DistTarget;

use self::target::{CHECKED_TARGETS, DIST_TARGETS};
use self::trial::ProgramUnderTrial;
use crate::command::{CommandRun, root, target_dir};
use crate::package_graph::PackageGraph;
use crate::steps::StepRunner;

/// The profile of the binaries, in the root's `Cargo.toml`.
const PROFILE: &str = "dist";
/// The target folder of the builds: in that of all others, cargo's own `dist` would be the folder of the
/// archives.
const BUILD_FOLDER: &str = "dist-build";
/// The options of a static program that the system loads anywhere: it is linked by the linker of Rust, with the C library
/// of Rust. Zig's driver links it at a fixed address, and refuses the last two, which pack its relocations (1.1 MB) and
/// keep one copy of functions with equal code (0.4 MB).
const ANYWHERE_LINKER: [&str; 4] = [
    "-Clinker=rust-lld",
    "-Clink-self-contained=yes",
    "-Clink-arg=-zpack-relative-relocs",
    "-Clink-arg=--icf=all",
];
/// The place of the type in an ELF file, and that of a program that can be loaded anywhere.
const ELF_TYPE: std::ops::Range<usize> = 16..18;
const ANYWHERE: [u8; 2] = [3, 0];
/// The files of the repository that every archive contains.
const DOCUMENTS: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "THIRD-PARTY-LICENSES.txt",
];
/// The shells with completions, and the names under which their files are installed.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "adit.bash"),
    ("elvish", "adit.elv"),
    ("fish", "adit.fish"),
    ("powershell", "_adit.ps1"),
    ("zsh", "_adit"),
];

/// The arguments of `dist`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DistOptions {
    /// The targets with an archive to build.
    targets: Vec<&'static str>,
    /// The targets to check.
    checked: Vec<&'static str>,
    run: bool,
    twice: bool,
}

impl DistOptions {
    /// Selects the static target of this machine's processor.
    pub(crate) fn of_host() -> Result<Self> {
        Ok(Self {
            targets: vec![DistTarget::of_host()?.triple],
            run: true,
            ..Self::default()
        })
    }

    pub(crate) fn from_args(args: &[String]) -> Result<Self> {
        let mut wish = Self::default();
        let (mut all, mut check, mut names) = (false, false, Vec::new());
        for arg in args {
            match arg.as_str() {
                "--all" => all = true,
                "--check" => check = true,
                "--run" => wish.run = true,
                "--twice" => wish.twice = true,
                option if option.starts_with('-') => bail!(
                    "`dist` takes `--all`, `--run`, `--twice`, `--check` and targets, not `{option}`"
                ),
                name => names.push(name),
            }
        }
        if check {
            ensure!(
                !wish.run && !wish.twice,
                "`--check` builds nothing that `--run` or `--twice` could use"
            );
            wish.checked = match names.is_empty() {
                true => CHECKED_TARGETS.to_vec(),
                false => find_checked(&names)?,
            };
            if all {
                wish.checked
                    .extend(DIST_TARGETS.map(|target| target.triple));
            }
            return Ok(wish);
        }
        ensure!(
            !all || names.is_empty(),
            "`--all` and a target exclude each other"
        );
        wish.targets = match (all, names.as_slice()) {
            (true, _) => DIST_TARGETS.map(|target| target.triple).to_vec(),
            (false, []) => vec![DistTarget::of_host()?.triple],
            (false, names) => {
                let found = names.iter().map(|name| DistTarget::find(name));
                found
                    .map(|target| Ok(target?.triple))
                    .collect::<Result<_>>()?
            }
        };
        Ok(wish)
    }
}

/// Returns the targets of these names, of those with an archive and of those without one.
fn find_checked(names: &[&str]) -> Result<Vec<&'static str>> {
    let known = || {
        let archived = DIST_TARGETS.map(|target| target.triple);
        CHECKED_TARGETS.into_iter().chain(archived)
    };
    let find = |name: &&str| {
        let found = known().find(|target| target == name);
        let all = || known().collect::<Vec<_>>().join(", ");
        found.with_context(|| format!("unknown target `{name}`; known are {}", all()))
    };
    names.iter().map(find).collect()
}

/// Builds the program of this machine's archive, beside other work.
pub(crate) fn build_ahead() -> Result<String> {
    let tools = CrossTools::install()?;
    let made = Distribution::prepare(&tools, DistTarget::of_host()?)?;
    let build = made.build_command(&target_dir().join(BUILD_FOLDER))?;
    build.at_idle_priority().run_captured("dist-ahead")?;
    Ok(String::new())
}

/// Builds, packs, checks and runs what is selected, in one step each.
pub(crate) fn run(steps: &mut StepRunner, wish: &DistOptions) {
    let mut tools = None;
    let installed = steps.run_step("install cross compiler", || {
        tools = Some(CrossTools::install()?);
        Ok(String::new())
    });
    let Some(tools) = tools.filter(|_| installed) else {
        return;
    };
    for triple in &wish.checked {
        steps.run_step(&format!("check {triple}"), || check_target(&tools, triple));
    }
    for triple in &wish.targets {
        let mut folder = None;
        steps.run_step(&format!("dist {triple}"), || {
            let target = DistTarget::find(triple)?;
            let made = Distribution::prepare(&tools, target)?;
            let (contents, note) = made.pack(&made.build(&target_dir().join(BUILD_FOLDER))?)?;
            folder = Some(contents);
            Ok(note)
        });
        let Some(folder) = folder else { continue };
        if wish.twice {
            steps.run_step(&format!("again {triple}"), || {
                Distribution::prepare(&tools, DistTarget::find(triple)?)?.compare(&folder)
            });
        }
        if wish.run {
            steps.run_step(&format!("run {triple}"), || {
                let target = DistTarget::find(triple)?;
                let program = folder.join(target.program_name());
                ProgramUnderTrial::new(program, Emulator::install(target)?).run()
            });
        }
    }
}

/// Compiles adit and its libraries for a target without linking a program.
fn check_target(tools: &CrossTools, triple: &str) -> Result<String> {
    let library = StandardLibrary::install(triple)?;
    // Not a build: the linker of some systems is not free.
    let check = match triple.contains("-android") {
        true => tools.cargo_check_android(triple),
        false => tools.cargo_zigbuild("check")?,
    };
    library
        .apply(check)
        .args(["--locked", "--package", "adit", "--target", triple])
        .with_limit(20)
        .run_captured(&format!("check-{triple}"))?;
    Ok(String::new())
}

/// One target of one version.
#[derive(Debug)]
struct Distribution<'a> {
    tools: &'a CrossTools,
    target: DistTarget,
    /// The first line of `rustc -V`.
    compiler: String,
    version: String,
    /// The time of all files, in seconds since 1970.
    time: u64,
}

impl<'a> Distribution<'a> {
    fn prepare(tools: &'a CrossTools, target: DistTarget) -> Result<Self> {
        ensure!(
            StandardLibrary::install(target.triple)? == StandardLibrary::Compiled,
            "rustup has no standard library for {}: the objects that start a program come with it",
            target.triple
        );
        let compiler = CommandRun::new("rustc", ["-V"]).run_captured("rustc-dist")?;
        Ok(Self {
            tools,
            target,
            compiler: compiler.trim().to_owned(),
            version: PackageGraph::load()?.version("adit")?.to_owned(),
            time: source_time()?,
        })
    }

    /// Returns the command that builds the program with `folder` as the target folder.
    fn build_command(&self, folder: &Path) -> Result<CommandRun> {
        let triple = self.target.triple;
        let build = self.tools.cargo_build()?;
        Ok(build
            .args(["--locked", "--profile", PROFILE, "--package", "adit"])
            .args(["--target", triple])
            .env("CARGO_TARGET_DIR", folder)
            .env("CARGO_ENCODED_RUSTFLAGS", self.rust_flags(folder)?)
            .env("SOURCE_DATE_EPOCH", self.time.to_string())
            .with_limit(60))
    }

    /// Builds the program with `folder` as the target folder, and returns its path.
    fn build(&self, folder: &Path) -> Result<PathBuf> {
        let triple = self.target.triple;
        let build = self.build_command(folder)?;
        build.run_captured(&format!("dist-{triple}"))?;
        let program = self.target.program_name();
        Ok(folder.join(triple).join(PROFILE).join(program))
    }

    /// Returns the flags that keep the folders of this machine out of the program; `folder` is the target
    /// folder.
    fn rust_flags(&self, folder: &Path) -> Result<OsString> {
        let sysroot = CommandRun::new("rustc", ["--print", "sysroot"]);
        let sysroot = PathBuf::from(sysroot.run_captured("sysroot")?.trim());
        let verbose = CommandRun::new("rustc", ["-vV"]).run_captured("rustc-dist-v")?;
        let commit = verbose
            .lines()
            .find_map(|l| l.strip_prefix("commit-hash: "));
        let commit = commit.context("`rustc -vV` names no commit")?;
        let mut flags = OsString::from("-Ctarget-feature=+crt-static");
        if self.target.is_position_independent() {
            for option in ANYWHERE_LINKER {
                flags.push("\x1f");
                flags.push(option);
            }
        }
        // The last prefix that matches decides.
        for (from, to) in [
            (cargo_home()?, "/cargo".to_owned()),
            (root(), "/adit".to_owned()),
            // Build scripts write source files there.
            (folder.to_owned(), "/target".to_owned()),
            // With the source of the standard library installed, the compiler names its real folder.
            (
                sysroot.join("lib/rustlib/src/rust"),
                format!("/rustc/{commit}"),
            ),
        ] {
            flags.push("\x1f--remap-path-prefix=");
            flags.push(from);
            flags.push("=");
            flags.push(to);
        }
        Ok(flags)
    }

    /// Collects the contents and writes the archive. Returns the folder of the contents, and a note.
    fn pack(&self, program: &Path) -> Result<(PathBuf, String)> {
        let all = target_dir().join("dist");
        let folder = all.join(format!("adit-{}-{}", self.version, self.target.triple));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(folder.join("man"))?;
        fs::create_dir_all(folder.join("completions"))?;
        let installed = folder.join(self.target.program_name());
        fs::copy(program, &installed).with_context(|| program.display().to_string())?;
        if self.target.is_position_independent() {
            let program = fs::read(&installed)?;
            ensure!(
                program.get(ELF_TYPE) == Some(&ANYWHERE),
                "the program has a fixed address"
            );
        }
        for name in DOCUMENTS {
            fs::copy(root().join(name), folder.join(name)).with_context(|| name.to_owned())?;
        }
        let list = sbom::bill_of_materials(self.target.triple, &self.compiler)?;
        fs::write(folder.join("adit.cdx.json"), list)?;
        let emulator = Emulator::install(self.target)?;
        let program = ProgramUnderTrial::new(installed.clone(), emulator);
        let pages = folder.join("man").to_string_lossy().into_owned();
        program.output(&["man", "--dir", &pages])?;
        for (shell, name) in COMPLETIONS {
            let script = program.output(&["completion", shell])?;
            fs::write(folder.join("completions").join(name), script)?;
        }
        let archive = match self.target.is_windows() {
            true => archive::write_zip(&folder, self.time)?,
            false => archive::write_tar_gz(&folder, self.time)?,
        };
        archive::write_sums(&all)?;
        let size = |path: &Path| Ok::<_, anyhow::Error>(fs::metadata(path)?.len() as f64 / 1e6);
        let note = format!(
            "{:.2} MB, packed {:.2} MB, {}",
            size(&installed)?,
            size(&archive)?,
            self.compiler
        );
        Ok((folder, note))
    }

    /// Builds the program once more, in another folder, and compares the bytes.
    fn compare(&self, folder: &Path) -> Result<String> {
        let other = target_dir().join("dist-again");
        let program = self.build(&other)?;
        let (first, second) = (
            archive::sha256_of(&folder.join(self.target.program_name()))?,
            archive::sha256_of(&program)?,
        );
        ensure!(
            first == second,
            "a second build of the same sources has other bytes: {first} and {second}; compare {} and {}",
            folder.display(),
            program.display()
        );
        fs::remove_dir_all(&other)?;
        Ok(format!("the same bytes: {first}"))
    }
}

/// Returns `SOURCE_DATE_EPOCH`, or the time of the last commit.
fn source_time() -> Result<u64> {
    if let Some(set) = env::var_os("SOURCE_DATE_EPOCH") {
        let time = set.to_str().and_then(|time| time.parse().ok());
        return time.with_context(|| {
            format!(
                "SOURCE_DATE_EPOCH is `{}`, not a number of seconds",
                set.display()
            )
        });
    }
    let log = CommandRun::new("git", ["log", "-1", "--format=%ct"]).run_captured("commit-time")?;
    log.trim()
        .parse()
        .context("git printed no time of the last commit; set SOURCE_DATE_EPOCH")
}

/// Returns the folder with the sources of crates.
fn cargo_home() -> Result<PathBuf> {
    let default = || Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"));
    let set = env::var_os("CARGO_HOME").map(PathBuf::from);
    set.or_else(default)
        .context("neither CARGO_HOME nor HOME is set")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Result<DistOptions> {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        DistOptions::from_args(&args)
    }

    #[test]
    fn the_default_is_the_static_target_of_this_processor() {
        let wish = options(&[]).unwrap();
        let [triple] = wish.targets[..] else { panic!() };
        let target = DistTarget::find(triple).unwrap();
        assert!(target.emulator().is_none() && !wish.run);
        assert_eq!(
            options(&["--run"]).unwrap(),
            DistOptions::of_host().unwrap()
        );
    }

    #[test]
    fn targets_are_selected() {
        let wish = options(&["aarch64-unknown-linux-musl", "--twice"]).unwrap();
        assert_eq!(wish.targets, ["aarch64-unknown-linux-musl"]);
        assert!(wish.twice && wish.checked.is_empty());
        let all = options(&["--all"]).unwrap();
        assert_eq!(all.targets.len(), DIST_TARGETS.len());
        assert!(options(&["--all", "aarch64-unknown-linux-musl"]).is_err());
        assert!(options(&["x"]).is_err());
        assert!(options(&["--alle"]).is_err());
    }

    #[test]
    fn checks_select_targets_with_and_without_an_archive() {
        let wish = options(&["--check"]).unwrap();
        assert_eq!(wish.checked, CHECKED_TARGETS);
        assert!(wish.targets.is_empty());
        let both = [
            "--check",
            "aarch64-apple-darwin",
            "x86_64-unknown-linux-musl",
        ];
        assert_eq!(options(&both).unwrap().checked, both[1..]);
        let all = options(&["--check", "--all"]).unwrap().checked.len();
        assert_eq!(all, CHECKED_TARGETS.len() + DIST_TARGETS.len());
        assert!(options(&["--check", "x"]).is_err());
        assert!(options(&["--check", "--run"]).is_err());
    }
}
