//! The modules that may contain `unsafe`, and their list in ARCHITECTURE.md.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::code_text::{blank_literals, has_word};
use crate::source_files::SourceFile;

/// The modules that may contain `unsafe`, each with the reason.
pub(super) const MODULES: [(&str, &str); 16] = [
    (
        "proto/adit-crypto/src/md5_block.rs",
        "MD5's compression function in the order that is fastest on processors; compared with the crate's",
    ),
    (
        "proto/adit-crypto/src/simd/",
        "kernels of ciphers and checks, each with a safe twin that it is compared with (SEC-X1)",
    ),
    (
        "proto/adit-fec/src/simd/",
        "kernels of GF(2⁸), each with a safe twin",
    ),
    (
        "proto/adit-umac/src/simd/",
        "kernels of NH, each with a safe twin",
    ),
    (
        "io/adit-net/src/on_demand.rs",
        "a socket is deregistered from the runtime and registered again",
    ),
    (
        "io/adit-net/src/child/prepare.rs",
        "the steps of a child between `fork` and `exec`",
    ),
    (
        "io/adit-net/src/child_on_windows/job.rs",
        "jobs of Windows, which end with this process",
    ),
    (
        "io/adit-net/src/memory.rs",
        "the allocator returns freed memory to the system, and code that only the start needs is unmapped",
    ),
    (
        "io/adit-net/src/named_pipe.rs",
        "the access list of a named pipe is passed as a pointer",
    ),
    (
        "io/adit-net/src/persistent_file/windows/lock.rs",
        "a part of a file is locked on Windows",
    ),
    (
        "io/adit-net/src/persistent_file/windows/security.rs",
        "access lists of files on Windows",
    ),
    (
        "io/adit-net/src/socket_option.rs",
        "socket options without a safe wrapper",
    ),
    (
        "io/adit-net/src/udp/poll_timer.rs",
        "a timer descriptor is registered with the runtime",
    ),
    (
        "io/adit-net/src/udp/watched_socket.rs",
        "a socket is registered for reading only",
    ),
    (
        "dev/adit-bench/src/short_turns.rs",
        "short time slices are requested from the kernel",
    ),
    ("dev/adit-link/src/tun.rs", "the device of a link is opened"),
];

/// The page, and the marks around the list.
const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- unsafe: begin; written by `ADIT_BLESS=1 cargo xtask tidy` -->\n";
const END: &str = "<!-- unsafe: end -->";

/// Returns the reason why this file may contain `unsafe`, if it may.
pub(super) fn unsafe_reason(path: &str) -> Option<&'static str> {
    let module = MODULES.iter().find(|(module, _)| path.starts_with(module));
    module.map(|(_, why)| *why)
}

/// Returns the faults of the list: modules without `unsafe`, and a page that differs.
pub(super) fn find_faults(sources: &[SourceFile]) -> Vec<String> {
    let (table, mut faults) = render_table(sources);
    let page = sources.iter().find(|source| source.path == PAGE);
    let Some((_, rest)) = page.and_then(|page| page.text.split_once(BEGIN)) else {
        faults.push(format!(
            "{PAGE}: the marks of the list of `unsafe` are missing"
        ));
        return faults;
    };
    if rest.split_once(END).map(|(listed, _)| listed) != Some(&*table) {
        faults.push(format!(
            "{PAGE}: the list of `unsafe` is outdated; `ADIT_BLESS=1 cargo xtask tidy` updates it"
        ));
    }
    faults
}

/// Writes the list into the page.
pub(super) fn write_list(root: &Path, sources: &[SourceFile]) -> Result<()> {
    let path = root.join(PAGE);
    let page = fs::read_to_string(&path)?;
    let (before, rest) = page
        .split_once(BEGIN)
        .context("the mark before the list is missing")?;
    let (_, after) = rest
        .split_once(END)
        .context("the mark after the list is missing")?;
    let (table, _) = render_table(sources);
    fs::write(path, format!("{before}{BEGIN}{table}{END}{after}"))?;
    Ok(())
}

/// Returns the list, and the modules that do not belong on it.
fn render_table(sources: &[SourceFile]) -> (String, Vec<String>) {
    let mut table = "| module | lines with `unsafe` | for |\n|---|--:|---|\n".to_owned();
    let mut faults = Vec::new();
    for (module, why) in MODULES {
        let files = sources.iter().filter(|file| file.path.starts_with(module));
        let lines = |file: &SourceFile| {
            let code = blank_literals(&file.text);
            let lines = code.lines().filter(|line| has_word(line, "unsafe"));
            lines.count()
        };
        match files.map(lines).sum::<usize>() {
            0 => faults.push(format!(
                "{module} contains no `unsafe`: remove it from the list of tidy"
            )),
            count => table.push_str(&format!("| `{module}` | {count} | {why} |\n")),
        }
    }
    (table, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(page: &str) -> Vec<SourceFile> {
        let kernels = MODULES.iter().map(|(module, _)| SourceFile {
            path: match module.ends_with('/') {
                true => format!("{module}a.rs"),
                false => (*module).to_owned(),
            },
            text: "let x = unsafe { y() };\n".to_owned(),
        });
        let page = SourceFile {
            path: PAGE.to_owned(),
            text: page.to_owned(),
        };
        kernels.chain([page]).collect()
    }

    #[test]
    fn the_page_has_the_list_as_it_is() {
        let old = tree(&format!("{BEGIN}{END}"));
        assert_eq!(find_faults(&old).len(), 1);
        let (list, none) = render_table(&old);
        assert!(none.is_empty() && list.contains("simd/` | 1 | "), "{list}");
        let mut now = tree(&format!("A\n{BEGIN}{list}{END}\nB\n"));
        assert!(find_faults(&now).is_empty());
        now.remove(0);
        // A module without any, and therefore an outdated list.
        assert_eq!(find_faults(&now).len(), 2);
        assert_eq!(find_faults(&tree("")).len(), 1);
    }
}
