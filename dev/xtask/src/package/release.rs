//! The release: its version, its address and its time.

use std::fs;

use anyhow::{Context, Result, ensure};
use toml::{Table, Value};

use super::template::Values;
use crate::command::{CommandRun, root};

/// The description of a release that packages share.
#[derive(Debug, Clone)]
pub(super) struct ReleaseInfo {
    pub(super) version: String,
    /// The address of the repository, from the workspace's manifest.
    pub(super) url: String,
    /// Time of the commit, in seconds since 1970.
    pub(super) time: u64,
}

impl ReleaseInfo {
    /// Reads the manifest of the workspace, and the time of the commit.
    pub(super) fn read() -> Result<Self> {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).context("Cargo.toml")?;
        let (version, url) = parse_manifest(&manifest)?;
        Ok(Self {
            version,
            url,
            time: commit_time()?,
        })
    }

    /// Returns the address of a file of the release.
    pub(super) fn download_url(&self, file: &str) -> String {
        format!("{}/{file}", self.download_folder())
    }

    /// Returns the address below which the files of the release are.
    pub(super) fn download_folder(&self) -> String {
        format!("{}/releases/download/v{}", self.url, self.version)
    }

    /// Returns the values that every template may use.
    pub(super) fn values(&self) -> Values {
        let host = self.url.split('/').nth(2).unwrap_or(&self.url);
        let mut values = Values::default();
        values.set("VERSION", &self.version);
        values.set("URL", &self.url);
        values.set("DOWNLOADS", self.download_folder());
        values.set("MAINTAINER", format!("The adit project <packages@{host}>"));
        values
    }

    /// Formats the release's time as `date` does.
    pub(super) fn format_time(&self, format: &str) -> Result<String> {
        let time = format!("--date=@{}", self.time);
        let text = CommandRun::new("date", ["--utc", &time, format])
            .env("LC_ALL", "C")
            .run_captured("date")?;
        Ok(text.trim().to_owned())
    }
}

/// Returns the version and the repository of a workspace.
fn parse_manifest(text: &str) -> Result<(String, String)> {
    let manifest: Table = text.parse().context("Cargo.toml")?;
    let package = manifest.get("workspace").and_then(|all| all.get("package"));
    let field = |name: &str| {
        let value = package.and_then(|package| package.get(name));
        let value = value.and_then(Value::as_str).map(str::to_owned);
        value.with_context(|| format!("Cargo.toml: no `{name}` in [workspace.package]"))
    };
    let url = field("repository")?;
    ensure!(
        url.starts_with("https://") && !url.ends_with('/'),
        "Cargo.toml: `repository` is not an https address without a slash at its end: {url}"
    );
    Ok((field("version")?, url))
}

/// Returns `SOURCE_DATE_EPOCH`, or the time of the last commit.
fn commit_time() -> Result<u64> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            CommandRun::new("git", ["log", "-1", "--format=%ct"]).run_captured("commit-time")?
        }
    };
    let time = text.trim().parse();
    time.with_context(|| format!("the time of the commit is not a number: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_address_come_from_the_manifest() {
        let manifest = |url: &str| {
            format!("[workspace.package]\nversion = \"1.2.3\"\nrepository = \"{url}\"\n")
        };
        let (version, url) = parse_manifest(&manifest("https://host.example/x")).unwrap();
        assert_eq!((&*version, &*url), ("1.2.3", "https://host.example/x"));
        assert!(parse_manifest(&manifest("https://host.example/x/")).is_err());
        assert!(parse_manifest("[workspace.package]\nversion = \"1\"\n").is_err());
    }

    #[test]
    fn times_are_formatted() {
        let release = ReleaseInfo {
            version: "1.2.3".to_owned(),
            url: "https://host.example/x".to_owned(),
            time: 86_400,
        };
        assert_eq!(release.format_time("+%Y-%m-%d").unwrap(), "1970-01-02");
        assert_eq!(
            release.download_url("a.zip"),
            "https://host.example/x/releases/download/v1.2.3/a.zip"
        );
    }

    /// `cargo binstall` downloads what the installer downloads.
    #[test]
    fn binstall_finds_the_archives() {
        let release = ReleaseInfo::read().unwrap();
        let text = fs::read_to_string(root().join("app/adit/Cargo.toml")).unwrap();
        let manifest: Table = text.parse().unwrap();
        let binstall = &manifest["package"]["metadata"]["binstall"];
        for (target, archived, suffix) in [
            (
                "x86_64-unknown-linux-musl",
                "x86_64-unknown-linux-musl",
                ".tar.gz",
            ),
            ("x86_64-pc-windows-gnu", "x86_64-pc-windows-gnu", ".zip"),
            ("x86_64-pc-windows-msvc", "x86_64-pc-windows-gnu", ".zip"),
        ] {
            let own = binstall.get("overrides").and_then(|all| all.get(target));
            let field = |name: &str| {
                let value = own.and_then(|own| own.get(name));
                let value = value.or_else(|| binstall.get(name)).unwrap();
                value
                    .as_str()
                    .unwrap()
                    .replace("{ repo }", &release.url)
                    .replace("{ version }", &release.version)
                    .replace("{ target }", target)
                    .replace("{ archive-suffix }", suffix)
                    .replace("{ bin }", "adit")
                    .replace("{ binary-ext }", if suffix == ".zip" { ".exe" } else { "" })
            };
            let folder = super::super::archives::folder_name(&release.version, archived);
            let file = super::super::archives::archive_name(&release.version, archived);
            assert_eq!(field("pkg-url"), release.download_url(&file));
            assert!(field("bin-dir").starts_with(&format!("{folder}/adit")));
            let format = field("pkg-fmt");
            assert_eq!(format, if suffix == ".zip" { "zip" } else { "tgz" });
        }
    }
}
