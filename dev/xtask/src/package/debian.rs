//! Packages of Debian and the systems that descend from it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::archives::UnpackedTarget;
use super::source::PackageSource;
use super::staging::{Layout, StagedTree};
use super::template;
use crate::command::{CommandRun, find_program, root};

const LAYOUT: Layout = Layout {
    zsh: "usr/share/zsh/vendor-completions",
    fish: "usr/share/fish/vendor_completions.d",
};

/// Files with the scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Builds one package for each Linux target that Debian has a name for.
pub(super) fn build(source: &PackageSource, output: &Path) -> Result<String> {
    source.build_each(architecture, |unpacked, architecture| {
        build_one(source, unpacked, architecture, output)
    })
}

/// Returns Debian's name of a processor family.
fn architecture(processor: &str) -> Option<&'static str> {
    match processor {
        "x86_64" => Some("amd64"),
        "aarch64" => Some("arm64"),
        _ => None,
    }
}

fn build_one(
    source: &PackageSource,
    unpacked: &UnpackedTarget,
    architecture: &str,
    output: &Path,
) -> Result<String> {
    let tree = StagedTree::create(output.join(architecture))?;
    tree.add_all(unpacked, &LAYOUT)?;
    let mut values = source.values();
    values.set("ARCHITECTURE", architecture);
    values.set(
        "DATE_RFC",
        source.release.format_time("+%a, %d %b %Y %T +0000")?,
    );
    values.set("YEAR", source.release.format_time("+%Y")?);
    let dependencies = library_dependencies(&unpacked.program(), output)?;
    values.set("DEPENDS", dependencies);

    let mit = fs::read_to_string(root().join("LICENSE-MIT"))?;
    let copyright = template::fill("debian/copyright", &values)? + &indented_license(&mit);
    tree.write("usr/share/doc/adit/copyright", &copyright, 0o644)?;
    let changelog = template::fill("debian/changelog", &values)?;
    let documents = "usr/share/doc/adit";
    tree.write(&format!("{documents}/changelog.Debian"), &changelog, 0o644)?;
    for (from, name) in [
        (root().join("CHANGELOG.md"), "changelog"),
        (
            unpacked.folder.join("THIRD-PARTY-LICENSES.txt"),
            "third-party.txt",
        ),
    ] {
        tree.copy(&from, &format!("{documents}/{name}"), 0o644)?;
    }
    for name in ["changelog.Debian", "changelog", "third-party.txt"] {
        tree.compress(&format!("{documents}/{name}"))?;
    }
    let overrides = template::read("debian/lintian-overrides")?;
    tree.write("usr/share/lintian/overrides/adit", &overrides, 0o644)?;

    for script in SCRIPTS {
        let text = template::read(&format!("debian/{script}"))?;
        tree.write(&format!("DEBIAN/{script}"), &text, 0o755)?;
    }
    tree.write("DEBIAN/conffiles", "/etc/adit/adit.toml\n", 0o644)?;
    let size = CommandRun::new("du", ["-sk", "--apparent-size", "--exclude=DEBIAN"])
        .args([&tree.root])
        .run_captured("du")?;
    let size = size
        .split_whitespace()
        .next()
        .context("`du` printed nothing")?;
    values.set("INSTALLED_SIZE", size);
    let control = template::fill("debian/control", &values)?;
    tree.write("DEBIAN/control", &control, 0o644)?;
    let sums = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums";
    CommandRun::new("sh", ["-euc", sums])
        .in_folder(&tree.root)
        .run_captured("md5sums")?;

    let name = format!("adit_{}-1_{architecture}.deb", source.release.version);
    CommandRun::new("dpkg-deb", ["--root-owner-group", "-Zxz", "--build"])
        .args([tree.root.as_path(), &output.join(&name)])
        .env("SOURCE_DATE_EPOCH", source.release.time.to_string())
        .run_captured("dpkg-deb")?;
    fs::remove_dir_all(&tree.root)?;
    Ok(name)
}

/// Returns the packages of the libraries that a program is linked to, each followed by a comma; nothing for
/// a static program.
fn library_dependencies(program: &Path, work: &Path) -> Result<String> {
    let bytes = fs::read(program).with_context(|| program.display().to_string())?;
    if !has_interpreter(&bytes) {
        return Ok(String::new());
    }
    anyhow::ensure!(
        find_program("dpkg-shlibdeps").is_some(),
        "cannot find `dpkg-shlibdeps` (Debian package dpkg-dev)"
    );
    // The command reads the name of the package from this file.
    let folder = work.join("libraries");
    fs::create_dir_all(folder.join("debian"))?;
    fs::write(
        folder.join("debian/control"),
        "Source: adit\n\nPackage: adit\nArchitecture: any\n",
    )?;
    let text = CommandRun::new("dpkg-shlibdeps", ["-O"])
        .args([program])
        .in_folder(&folder)
        .run_captured("dpkg-shlibdeps")?;
    fs::remove_dir_all(&folder)?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("shlibs:Depends="));
    let line = line.context("`dpkg-shlibdeps` printed no dependencies")?;
    Ok(format!("{line}, "))
}

/// Returns true if a 64- or 32-bit ELF program needs a dynamic loader (`PT_INTERP`).
pub(super) fn has_interpreter(elf: &[u8]) -> bool {
    const PT_INTERP: [u8; 4] = [3, 0, 0, 0];
    let number = |at: usize, length: usize| {
        let bytes = elf.get(at..at + length)?;
        let bytes = bytes.iter().rev();
        Some(bytes.fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    };
    let is_64 = elf.get(4) == Some(&2);
    let (table, size, count) = match is_64 {
        true => (number(32, 8), number(54, 2), number(56, 2)),
        false => (number(28, 4), number(42, 2), number(44, 2)),
    };
    let (Some(table), Some(size), Some(count)) = (table, size, count) else {
        return false;
    };
    (0..count).any(|n| {
        elf.get(table + n * size..)
            .is_some_and(|row| row.starts_with(&PT_INTERP))
    })
}

/// Formats a licence as the value of a field: without its title and its line of copyright, which have
/// fields of their own.
fn indented_license(text: &str) -> String {
    let body = text
        .lines()
        .skip_while(|line| !line.starts_with("Permission"));
    body.map(|line| match line.trim_end() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_is_recognized() {
        let mut elf = vec![0; 200];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = 2;
        assert!(!has_interpreter(&elf));
        elf[64 + 56] = 3;
        assert!(has_interpreter(&elf));
        assert!(!has_interpreter(b"\x7fELF"));
    }

    #[test]
    fn a_licence_is_the_value_of_a_field() {
        let text = "MIT License\n\nCopyright\n\nPermission is\n\ngranted\n";
        assert_eq!(indented_license(text), " Permission is\n .\n granted\n");
    }
}
