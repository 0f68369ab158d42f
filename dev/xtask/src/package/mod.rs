//! `package`: packages of other systems, made from the archives of a release and the templates in
//! `packaging`.

mod arch;
mod archives;
mod check;
mod container;
mod debian;
mod installer;
mod manifests;
mod openwrt;
mod release;
mod rpm;
mod source;
mod staging;
mod template;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::target_dir;
use crate::steps::StepRunner;

use archives::ReleaseArchives;
pub(crate) use check::{PACKAGE_TOOLS, check_packages, install_debian_root};
use release::ReleaseInfo;
use source::PackageSource;

/// A kind of package.
struct Format {
    name: &'static str,
    build: fn(&PackageSource, &Path) -> Result<String>,
}

/// All kinds, in the order in which they are built.
const FORMATS: &[Format] = &[
    Format {
        name: "deb",
        build: debian::build,
    },
    Format {
        name: "rpm",
        build: rpm::build,
    },
    Format {
        name: "arch",
        build: arch::build,
    },
    Format {
        name: "homebrew",
        build: manifests::build_homebrew,
    },
    Format {
        name: "nix",
        build: manifests::build_nix,
    },
    Format {
        name: "scoop",
        build: manifests::build_scoop,
    },
    Format {
        name: "winget",
        build: manifests::build_winget,
    },
    Format {
        name: "openwrt",
        build: openwrt::build,
    },
    Format {
        name: "container",
        build: container::build,
    },
    Format {
        name: "installer",
        build: installer::build,
    },
];

/// The arguments of `package`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PackageOptions {
    /// Names of the kinds; all if there is none.
    formats: Vec<String>,
    dist: Option<PathBuf>,
    release_key: Option<PathBuf>,
}

impl PackageOptions {
    pub(crate) fn from_args(args: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            let mut path = || {
                let path = words.next().map(PathBuf::from);
                path.with_context(|| format!("`{word}` needs a path"))
            };
            match word.as_str() {
                "--dist" => options.dist = Some(path()?),
                "--release-key" => options.release_key = Some(path()?),
                name if FORMATS.iter().any(|format| format.name == name) => {
                    options.formats.push(name.to_owned());
                }
                other => {
                    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                    bail!(
                        "`package` takes `--dist DIR`, `--release-key FILE` and the formats {}, not `{other}`",
                        names.join(", ")
                    )
                }
            }
        }
        Ok(options)
    }
}

/// Builds the requested packages, one step each, in `target/package`.
pub(crate) fn build_packages(steps: &mut StepRunner, options: &PackageOptions) -> Result<()> {
    let dist = match &options.dist {
        Some(dist) => dist.clone(),
        None => target_dir().join("dist"),
    };
    let release = ReleaseInfo::read()?;
    let source = PackageSource {
        archives: ReleaseArchives::read(&dist, &release.version)?,
        release,
        release_key: options.release_key.clone(),
    };
    let output = target_dir().join("package");
    for format in FORMATS {
        let is_requested = options.formats.iter().any(|name| name == format.name);
        if is_requested || options.formats.is_empty() {
            steps.run_step(format.name, || build_format(format, &source, &output));
        }
    }
    Ok(())
}

/// Builds one kind of package in a new folder below `output`.
fn build_format(format: &Format, source: &PackageSource, output: &Path) -> Result<String> {
    let folder = output.join(format.name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    (format.build)(source, &folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            PackageOptions::from_args(&words)
        };
        let options = read(&["deb", "--dist", "d", "nix", "--release-key", "k.pub"]).unwrap();
        assert_eq!(options.formats, ["deb", "nix"]);
        assert_eq!(options.dist, Some("d".into()));
        assert_eq!(options.release_key, Some("k.pub".into()));
        assert_eq!(read(&[]).unwrap(), PackageOptions::default());
        let why = read(&["debb"]).unwrap_err().to_string();
        assert!(
            why.contains("deb, rpm") && why.ends_with("not `debb`"),
            "{why}"
        );
        assert!(read(&["--dist"]).is_err());
    }
}
