//! The machine, the time and the versions of a measurement, without which a figure means nothing.

use std::fs;
use std::path::Path;

use crate::args::BenchSettings;
use crate::locations::output_of;
use crate::peers::InstalledPeer;

/// CPU features, by the kernel's names.
const CPU_FEATURES: [&str; 8] = [
    "aes",
    "vaes",
    "pclmulqdq",
    "vpclmulqdq",
    "avx2",
    "avx512f",
    "sha_ni",
    "pmull",
];

/// The machine, the time, the command and the versions.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunEnvironment {
    /// Output of `date`, in UTC.
    pub(crate) date: String,
    /// The processor's model and the number of processors.
    pub(crate) cpu: String,
    pub(crate) kernel: String,
    /// Load averages before the first measurement.
    pub(crate) load: String,
    /// The command that started the run.
    pub(crate) command: String,
    /// The commit that adit was built from; empty if it was built elsewhere.
    pub(crate) commit: String,
    /// Implementations and their versions.
    pub(crate) versions: Vec<(&'static str, String)>,
    /// Implementations that are not installed.
    pub(crate) missing: Vec<&'static str>,
    /// The version of perf, if it can count system calls.
    pub(crate) counter: Option<String>,
}

impl RunEnvironment {
    /// Collects the environment.
    pub(crate) fn capture(
        settings: &BenchSettings,
        peers: &[InstalledPeer],
        missing: Vec<&'static str>,
        counter: Option<String>,
    ) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let load = read("/proc/loadavg");
        Self {
            date: output_of("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
            cpu: describe_cpu(&read("/proc/cpuinfo")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: load
                .split_whitespace()
                .take(3)
                .collect::<Vec<_>>()
                .join(" "),
            command: command_line(std::env::args().skip(1)),
            commit: if settings.adit.is_none() {
                current_commit()
            } else {
                String::new()
            },
            versions: peers
                .iter()
                .map(|peer| (peer.name(), peer.version().to_owned()))
                .collect(),
            missing,
            counter,
        }
    }
}

/// Returns the number and model of the processors, and those features that ciphers and checksums
/// use: a virtual machine may not report its model.
fn describe_cpu(info: &str) -> String {
    let value = |key: &str| {
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix(key)?.split_once(':'));
        line.map_or("", |(_, value)| value.trim())
    };
    let model = match value("model name") {
        "" => "unknown model",
        model => model,
    };
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    // x86, then ARM.
    let flags = format!("{} {}", value("flags"), value("Features"));
    let has = |name: &&str| flags.split_whitespace().any(|flag| flag == *name);
    let abilities: Vec<&str> = CPU_FEATURES.iter().copied().filter(has).collect();
    match abilities.join(" ") {
        none if none.is_empty() => format!("{count} × {model}"),
        some => format!("{count} × {model} ({some})"),
    }
}

fn current_commit() -> String {
    let id = output_of("git", &["rev-parse", "--short", "HEAD"]);
    let changed = !output_of("git", &["status", "--porcelain", "--untracked-files=no"]).is_empty();
    if changed && !id.is_empty() {
        format!("{id} with changes")
    } else {
        id
    }
}

/// Returns the command line with only the last part of paths, since the folders of one machine are
/// irrelevant to the reader.
fn command_line(args: impl Iterator<Item = String>) -> String {
    let name_only = |text: &str| {
        let name = Path::new(text).file_name().filter(|_| text.contains('/'));
        name.map_or_else(
            || text.to_owned(),
            |name| name.to_string_lossy().into_owned(),
        )
    };
    let word = |arg: String| match arg.split_once('=') {
        Some((option, value)) => format!("{option}={}", name_only(value)),
        None => name_only(&arg),
    };
    ["cargo xtask bench".to_owned()]
        .into_iter()
        .chain(args.map(word))
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_once() {
        let info = "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\nflags\t: fpu aes avx2 xyz\n\
                    processor\t: 1\nmodel name\t: Fast CPU @ 3 GHz\nflags\t: fpu aes avx2 xyz\n";
        assert!(
            describe_cpu(info).ends_with("× Fast CPU @ 3 GHz (aes avx2)"),
            "{}",
            describe_cpu(info)
        );
        assert!(
            describe_cpu("").ends_with("× unknown model"),
            "{}",
            describe_cpu("")
        );
    }

    #[test]
    fn folders_are_left_out_of_the_command() {
        let words = [
            "--suite",
            "a,b",
            "--adit",
            "/some/where/adit",
            "--json=/x/y.json",
        ];
        let line = command_line(words.into_iter().map(str::to_owned));
        assert_eq!(
            line,
            "cargo xtask bench --suite a,b --adit adit --json=y.json"
        );
    }
}
