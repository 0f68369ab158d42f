//! The package of OpenWrt: its Makefile with rules in place of those of the SDK, and its init script with functions in
//! place of procd's.

use std::fs;
use std::path::PathBuf;
use std::slice;

use anyhow::{Context, Result, ensure};

use super::packages_under_test::{BuiltPackages, script, shellcheck};
use crate::command::CommandRun;
use crate::package::archives::{archive_name, folder_name};

/// The variables of OpenWrt's `rules.mk` that the Makefile uses.
const RULES: &str =
    "INSTALL_DIR:=install -d -m0755\nINSTALL_BIN:=install -m0755\nINSTALL_CONF:=install -m0600\n";
/// Targets in place of those of `package.mk`: one installs, one prints what the SDK would download.
const PACKAGE: &str = "\
define BuildPackage
install:
\t$$(call Package/$(1)/install,$$(DESTINATION))
source:
\t@echo '$$(PKG_SOURCE_URL)$$(PKG_SOURCE) $$(PKG_HASH)'
endef
";

pub(super) fn check(packages: &BuiltPackages) -> Result<()> {
    let folder = packages.folder("openwrt");
    let init = folder.join("files/adit.init");
    shellcheck("dash", slice::from_ref(&init))?;
    check_makefile(packages)?;

    let program = packages.program()?;
    let config = packages.work.join("openwrt.toml");
    fs::write(
        &config,
        "[route.main]\nlisten = \"mixed://127.0.0.1:1080\"\n",
    )?;
    let run = |action: &str| {
        CommandRun::new("sh", [PathBuf::from(script("openwrt.sh")), init.clone()])
            .args([&program, &config])
            .args([action])
            .run_captured("openwrt-init")
    };
    let output = run("start_service")?;
    let command = format!(
        "procd_set_param <command> <{}> <run> <-c> <{}>",
        program.display(),
        config.display()
    );
    ensure!(
        output.contains(&command) && output.trim_end().ends_with("procd_close_instance <>"),
        "the init script starts something else:\n{output}"
    );
    let output = run("reload_service")?;
    ensure!(
        output == "procd_send_signal <adit> <*> <HUP>\n",
        "reload: {output}"
    );
    fs::write(&config, "# no route\n")?;
    ensure!(
        run("start_service").is_err(),
        "the service starts with a configuration without a route"
    );
    Ok(())
}

fn check_makefile(packages: &BuiltPackages) -> Result<()> {
    let release = &packages.source.release;
    let sdk = packages.work.join("sdk");
    fs::create_dir_all(&sdk)?;
    fs::write(sdk.join("rules.mk"), RULES)?;
    fs::write(sdk.join("package.mk"), PACKAGE)?;
    let make = |processor: &str, goal: &str| {
        CommandRun::new("make", ["--no-print-directory", goal])
            .args([format!("TOPDIR={}", sdk.display())])
            .args([format!("INCLUDE_DIR={}", sdk.display())])
            .args([format!("BUILD_DIR={}", packages.dist.display())])
            .args([format!("DESTINATION={}", sdk.join("root").display())])
            .args([format!("ARCH={processor}")])
            .in_folder(packages.folder("openwrt"))
            .run_captured("openwrt-make")
    };
    for (processor, target) in [
        ("x86_64", "x86_64-unknown-linux-musl"),
        ("aarch64", "aarch64-unknown-linux-musl"),
    ] {
        let file = archive_name(&release.version, target);
        let expected = format!(
            "{} {}\n",
            release.download_url(&file),
            packages.source.archives.sum(target)?
        );
        let source = make(processor, "source")?;
        ensure!(source == expected, "{processor}: {source}is not {expected}");
    }
    let unpacked = packages.dist.join(folder_name(
        &release.version,
        &format!("{}-unknown-linux-musl", std::env::consts::ARCH),
    ));
    ensure!(unpacked.is_dir(), "no {}", unpacked.display());
    make(std::env::consts::ARCH, "install")?;
    let program = sdk.join("root/usr/bin/adit");
    CommandRun::new(&program, ["--version"])
        .run_captured("openwrt-program")
        .context("the installed program")?;
    for place in ["etc/init.d/adit", "etc/adit/adit.toml"] {
        ensure!(sdk.join("root").join(place).is_file(), "no `{place}`");
    }
    Ok(())
}
