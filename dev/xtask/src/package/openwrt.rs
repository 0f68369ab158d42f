//! The package of OpenWrt: its Makefile and its init script.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::source::PackageSource;
use super::template;

/// Writes the folder that is copied to `package/adit` of OpenWrt.
pub(super) fn build(source: &PackageSource, output: &Path) -> Result<String> {
    let mut values = source.values();
    for (name, target) in [
        ("SUM_X86_64", "x86_64-unknown-linux-musl"),
        ("SUM_AARCH64", "aarch64-unknown-linux-musl"),
    ] {
        values.set(name, source.archives.sum(target)?);
    }
    let makefile = template::fill("openwrt/Makefile", &values)?;
    fs::write(output.join("Makefile"), makefile)?;
    let files = output.join("files");
    fs::create_dir_all(&files)?;
    let config = template::example_config("service adit enable && service adit start")?;
    let script = template::read("openwrt/files/adit.init")?;
    fs::write(files.join("adit.init"), script)?;
    fs::write(files.join("adit.toml"), config)?;
    Ok("Makefile and 2 files".to_owned())
}
