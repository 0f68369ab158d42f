//! The descriptions for Homebrew, Nix, Scoop and winget: evaluated by the language they are written in, compared with
//! the archives that they name, and installed as far as that needs nothing but the archive.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::packages_under_test::{BuiltPackages, script};
use crate::command::CommandRun;

/// Evaluates the formula with classes in place of Homebrew's, and runs its installation.
pub(super) fn check_homebrew(packages: &BuiltPackages) -> Result<()> {
    let formula = packages.folder("homebrew").join("adit.rb");
    CommandRun::new("ruby", ["-wc"])
        .args([&formula])
        .run_captured("ruby")?;
    let prefix = packages.work.join("homebrew");
    let unpacked = packages.source.archives.require_linux()?[0].folder.clone();
    let output = CommandRun::new("ruby", [script("formula.rb")])
        .args([&formula, &prefix])
        .in_folder(unpacked)
        .run_captured("formula")?;
    let resources: Value = serde_json::from_str(&output).context("formula.rb")?;
    let resources = resources.as_array().context("formula.rb")?;
    ensure!(resources.len() == 4, "{} archives, not 4", resources.len());
    for resource in resources {
        check_resource(
            packages,
            text(resource, "/url")?,
            text(resource, "/sha256")?,
        )?;
    }
    CommandRun::new(prefix.join("bin/adit"), ["--version"]).run_captured("formula-program")?;
    for place in ["man1/adit.1", "man5/adit.toml.5", "bash_completion/adit"] {
        ensure!(
            prefix.join(place).is_file(),
            "the formula installs no `{place}`"
        );
    }
    Ok(())
}

/// Parses the flake, evaluates its packages with values in place of nixpkgs, and runs their installation.
pub(super) fn check_nix(packages: &BuiltPackages) -> Result<()> {
    let flake = packages.folder("nix").join("flake.nix");
    let home = packages.work.join("nix");
    let nix = |args: &[&str], name: &str| {
        CommandRun::new("nix-instantiate", args)
            .env("NIX_STATE_DIR", home.join("state"))
            .env("NIX_STORE_DIR", home.join("store"))
            .env("NIX_CONF_DIR", &home)
            .env("NIX_LOCALSTATE_DIR", &home)
            .env("HOME", &home)
            .run_captured(name)
    };
    let path = flake.to_string_lossy();
    nix(&["--parse", &path], "nix-parse")?;
    let expression = script("flake.nix");
    let evaluate = ["--eval", "--strict", "--json", "--store", "dummy://"];
    let arguments = ["--argstr", "flake", &*path, &*expression];
    let evaluate = [&evaluate[..], &arguments[..]].concat();
    let output = nix(&evaluate, "nix-eval")?;
    let json = output.lines().find(|line| line.starts_with('{'));
    let evaluated: Value = serde_json::from_str(json.context("no object")?)?;
    let systems = evaluated.as_object().context("no object")?;
    ensure!(systems.len() == 4, "{} systems, not 4", systems.len());
    for package in systems.values() {
        check_resource(packages, text(package, "/url")?, text(package, "/sha256")?)?;
    }
    let install = text(&evaluated, "/x86_64-linux/installPhase")?;
    let functions = "runHook() { :; }\ninstallManPage() { ls \"$@\"; }\n\
        installShellCompletion() { for word; do case $word in completions/*) ls \"$word\";; esac; done; }\n";
    let unpacked = &packages.source.archives.require_linux()?[0].folder;
    let out = packages.work.join("nix-out");
    CommandRun::new("bash", ["-euc", &format!("{functions}{install}")])
        .env("out", &out)
        .in_folder(unpacked)
        .run_captured("nix-install")?;
    CommandRun::new(out.join("bin/adit"), ["--version"]).run_captured("nix-program")?;
    Ok(())
}

/// Compares the manifest with the schema, and with the archive.
pub(super) fn check_scoop(packages: &BuiltPackages) -> Result<()> {
    let path = packages.folder("scoop").join("adit.json");
    let manifest: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    validate(&manifest, "scoop.schema.json")?;
    let archive = "/architecture/64bit";
    check_resource(
        packages,
        text(&manifest, &format!("{archive}/url"))?,
        text(&manifest, &format!("{archive}/hash"))?,
    )?;
    // What Scoop would download for this version.
    let template = text(&manifest, &format!("/autoupdate{archive}/url"))?;
    let version = text(&manifest, "/version")?;
    let url = text(&manifest, &format!("{archive}/url"))?;
    ensure!(
        template.replace("$version", version) == url,
        "`autoupdate` names another address than {url}"
    );
    Ok(())
}

/// Compares the manifests with their schemas, and with the archive.
pub(super) fn check_winget(packages: &BuiltPackages) -> Result<()> {
    let folder = packages.folder("winget");
    for (name, schema) in [
        ("adit.adit.yaml", "winget-version.schema.json"),
        ("adit.adit.installer.yaml", "winget-installer.schema.json"),
        ("adit.adit.locale.en-US.yaml", "winget-locale.schema.json"),
    ] {
        let manifest = read_yaml(&folder.join(name))?;
        validate(&manifest, schema).with_context(|| name.to_owned())?;
        if let Some(installer) = manifest.pointer("/Installers/0") {
            let sum = text(installer, "/InstallerSha256")?.to_lowercase();
            check_resource(packages, text(installer, "/InstallerUrl")?, &sum)?;
        }
    }
    Ok(())
}

/// Checks that an address is that of a file of the release, which has this SHA-256.
fn check_resource(packages: &BuiltPackages, url: &str, sum: &str) -> Result<()> {
    let release = &packages.source.release;
    let folder = release.download_folder();
    let file = url
        .strip_prefix(&folder)
        .and_then(|rest| rest.strip_prefix('/'));
    let Some(file) = file else {
        bail!("{url} is not below {folder}");
    };
    let output =
        CommandRun::new("sha256sum", [packages.dist.join(file)]).run_captured("sha256sum")?;
    ensure!(
        output.split_whitespace().next() == Some(sum),
        "{file}: its SHA-256 is not {sum}"
    );
    Ok(())
}

/// Returns the text at a JSON pointer.
fn text<'a>(value: &'a Value, pointer: &str) -> Result<&'a str> {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.with_context(|| format!("no text at {pointer}"))
}

fn read_yaml(path: &Path) -> Result<Value> {
    // Dates stay text.
    let program = "require 'yaml'; require 'json'; puts YAML.safe_load(File.read(ARGV[0])).to_json";
    let output = CommandRun::new("ruby", ["-e", program])
        .args([path])
        .run_captured("yaml")?;
    Ok(serde_json::from_str(&output)?)
}

/// Validates a value against a schema beside this file.
fn validate(value: &Value, schema: &str) -> Result<()> {
    let path = script(schema);
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    let added = compiler.add_resource(schema, serde_json::from_str(&text)?);
    added.map_err(|why| anyhow::anyhow!("{schema}: {why}"))?;
    let index = compiler.compile(schema, &mut schemas);
    let index = index.map_err(|why| anyhow::anyhow!("{schema}: {why}"))?;
    let valid = schemas.validate(value, index);
    valid.map_err(|why| anyhow::anyhow!("{why:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn schemas_refuse_what_the_systems_refuse() {
        let manifest = json!({
            "version": "1.0.0",
            "description": "x",
            "homepage": "https://host.example/",
            "license": "MIT",
            "architecture": { "64bit": { "url": "https://host.example/a.zip", "hash": "ab".repeat(32) } },
            "bin": "adit.exe",
        });
        validate(&manifest, "scoop.schema.json").unwrap();
        for (key, value) in [
            ("binary", json!("adit.exe")),
            ("homepage", json!(7)),
            (
                "architecture",
                json!({ "64bit": { "url": "https://host.example/a", "hash": "ab" } }),
            ),
            ("architecture", json!({ "amd64": {} })),
        ] {
            let mut changed = manifest.clone();
            changed[key] = value;
            assert!(
                validate(&changed, "scoop.schema.json").is_err(),
                "{changed}"
            );
        }
        let version = json!({
            "PackageIdentifier": "adit.adit",
            "PackageVersion": "1.0.0",
            "DefaultLocale": "en-US",
            "ManifestType": "version",
            "ManifestVersion": "1.6.0",
        });
        validate(&version, "winget-version.schema.json").unwrap();
        for (key, value) in [
            ("PackageIdentifier", json!("adit")),
            ("PackageVersion", json!("1:0")),
            ("ManifestType", json!("installer")),
            ("Other", json!("x")),
        ] {
            let mut changed = version.clone();
            changed[key] = value;
            assert!(
                validate(&changed, "winget-version.schema.json").is_err(),
                "{changed}"
            );
        }
    }
}
