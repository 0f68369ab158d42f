//! The package description of Arch Linux, with the files that it installs beside the program.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::source::PackageSource;
use super::staging::{SYSTEMD, file_name, service_units, sorted_files};
use super::template;
use crate::command::CommandRun;

/// Name of the script, which is not a source: it is part of the description.
const SCRIPT: &str = "adit.install";

/// Writes the description and its files.
pub(super) fn build(source: &PackageSource, output: &Path) -> Result<String> {
    fs::write(output.join("adit.toml"), template::example_config(SYSTEMD)?)?;
    fs::write(
        output.join("adit.sysusers"),
        template::read("sysusers.conf")?,
    )?;
    let mut installs = Vec::new();
    for unit in service_units()? {
        // A system and a user unit may have the same name.
        let name = unit.place.replace('/', "-");
        fs::write(output.join(&name), &unit.text)?;
        installs.push(format!(
            "\tinstall -Dm644 \"$srcdir/{name}\" \"$pkgdir/usr/lib/systemd/{}\"",
            unit.place
        ));
    }
    let files = sorted_files(output)?;
    fs::write(output.join(SCRIPT), template::read("arch/adit.install")?)?;
    let sums = CommandRun::new("sha256sum", &files).run_captured("sha256sum")?;
    let sums = sums.split_whitespace().step_by(2).map(str::to_owned);

    let mut values = source.values();
    let names = files.iter().map(|path| file_name(path));
    values.set("LOCAL_FILES", quoted_list(names));
    values.set("LOCAL_SUMS", quoted_list(sums));
    values.set("INSTALL_UNITS", installs.join("\n"));
    let sum = |processor: &str| {
        let target = format!("{processor}-unknown-linux-musl");
        source.archives.sum(&target)
    };
    values.set("SUM_X86_64", sum("x86_64")?);
    values.set("SUM_AARCH64", sum("aarch64")?);
    fs::write(
        output.join("PKGBUILD"),
        template::fill("arch/PKGBUILD", &values)?,
    )?;
    Ok(format!("PKGBUILD and {} files", files.len() + 1))
}

/// Formats the values of an array of the shell.
fn quoted_list(words: impl Iterator<Item = String>) -> String {
    words
        .map(|word| format!("'{word}'"))
        .collect::<Vec<_>>()
        .join("\n        ")
}
