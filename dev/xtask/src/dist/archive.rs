//! Archives whose bytes depend on nothing but the files in them.
//!
//! Entries are sorted by name, have no owner, the time of the commit and one of two modes;
//! the compressors write neither a name nor a time. The same files make the same archive on every
//! machine.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use tar::{EntryType, Header, HeaderMode};
use time::{OffsetDateTime, PrimitiveDateTime};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// The value of the gzip header for an unknown operating system.
const NO_SYSTEM: u8 = 255;
const PROGRAM_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;
/// The highest compression level of zip.
const ZIP_LEVEL: i64 = 9;

/// Writes `FOLDER.tar.gz` beside a folder, and returns its path. `time` is in seconds since 1970.
pub(crate) fn write_tar_gz(folder: &Path, time: u64) -> Result<PathBuf> {
    let path = with_suffix(folder, ".tar.gz")?;
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    let gzip = GzBuilder::new()
        .operating_system(NO_SYSTEM)
        .write(file, Compression::best());
    let mut archive = tar::Builder::new(gzip);
    for (name, source) in entries_of(folder)? {
        let mut header = Header::new_ustar();
        let metadata = fs::metadata(&source)?;
        header.set_metadata_in_mode(&metadata, HeaderMode::Deterministic);
        header.set_mtime(time);
        if metadata.is_dir() {
            header.set_entry_type(EntryType::Directory);
            header.set_mode(PROGRAM_MODE);
            header.set_size(0);
            archive.append_data(&mut header, format!("{name}/"), std::io::empty())?;
        } else {
            header.set_mode(mode_of(&source)?);
            archive.append_data(&mut header, name, File::open(&source)?)?;
        }
    }
    archive.into_inner()?.finish()?.sync_all()?;
    Ok(path)
}

/// Writes `FOLDER.zip` beside a folder, and returns its path. `time` is in seconds since 1970.
pub(crate) fn write_zip(folder: &Path, time: u64) -> Result<PathBuf> {
    let path = with_suffix(folder, ".zip")?;
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    let mut archive = ZipWriter::new(file);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(ZIP_LEVEL))
        .last_modified_time(dos_time(time)?);
    for (name, source) in entries_of(folder)? {
        if source.is_dir() {
            archive.add_directory(name, options.unix_permissions(PROGRAM_MODE))?;
        } else {
            archive.start_file(name, options.unix_permissions(mode_of(&source)?))?;
            std::io::copy(&mut File::open(&source)?, &mut archive)?;
        }
    }
    archive.finish()?.sync_all()?;
    Ok(path)
}

/// Converts a time to the form of zip, which has neither a time zone nor odd seconds, and begins in 1980.
fn dos_time(time: u64) -> Result<DateTime> {
    let utc = OffsetDateTime::from_unix_timestamp(i64::try_from(time)?)?;
    DateTime::try_from(PrimitiveDateTime::new(utc.date(), utc.time()))
        .with_context(|| format!("{utc}, the time of the commit, is not one of zip"))
}

/// Returns a folder and all that is in it, sorted by the names in the archive.
fn entries_of(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut found = vec![(file_name(folder)?, folder.to_owned())];
    let mut at = 0;
    while let Some((name, path)) = found.get(at).cloned() {
        at += 1;
        if path.is_dir() {
            for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
                let path = entry?.path();
                found.push((format!("{name}/{}", file_name(&path)?), path));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the mode of a file in an archive, which does not depend on the umask of this machine.
fn mode_of(path: &Path) -> Result<u32> {
    let mut start = [0; 4];
    let read = File::open(path)?.read(&mut start)?;
    let start = start.get(..read).unwrap_or_default();
    let is_program = start == b"\x7fELF" || start.starts_with(b"MZ");
    Ok(if is_program { PROGRAM_MODE } else { FILE_MODE })
}

fn file_name(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.with_context(|| format!("{}: not a name in UTF-8", path.display()))?;
    Ok(name.to_owned())
}

fn with_suffix(folder: &Path, suffix: &str) -> Result<PathBuf> {
    // Not `with_extension`: the name has dots of the version.
    Ok(folder.with_file_name(format!("{}{suffix}", file_name(folder)?)))
}

/// Returns the SHA-256 of a file in hexadecimal.
pub(crate) fn sha256_of(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| path.display().to_string())?;
    Ok(hex(&Sha256::digest(bytes)))
}

/// Returns bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes `SHA256SUMS` for all archives in a folder, in the format of `sha256sum --check`.
pub(crate) fn write_sums(folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && file_name(&path)? != "SHA256SUMS" {
            names.push(file_name(&path)?);
        }
    }
    ensure!(!names.is_empty(), "{}: no archive", folder.display());
    names.sort();
    let mut sums = File::create(folder.join("SHA256SUMS"))?;
    for name in names {
        writeln!(sums, "{}  {name}", sha256_of(&folder.join(&name))?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder `adit-1.2.3-x` with a few files, which are written in this order.
    struct Sample(PathBuf);

    impl Sample {
        fn new(test: &str, names: &[&str]) -> Self {
            let name = format!("adit-archive-{test}-{}", std::process::id());
            let outer = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&outer);
            let inner = outer.join("adit-1.2.3-x");
            fs::create_dir_all(inner.join("man")).unwrap();
            for name in names {
                let start: &[u8] = match *name {
                    "adit" => b"\x7fELF",
                    "adit.exe" => b"MZ\x90\0",
                    _ => b"",
                };
                let content = [start, name.as_bytes()].concat();
                fs::write(inner.join(name), content).unwrap();
            }
            Self(outer)
        }

        fn archive(&self) -> PathBuf {
            write_tar_gz(&self.0.join("adit-1.2.3-x"), 1_700_000_000).unwrap()
        }

        fn zip(&self) -> PathBuf {
            write_zip(&self.0.join("adit-1.2.3-x"), 1_700_000_000).unwrap()
        }
    }

    impl Drop for Sample {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_same_files_make_the_same_archive() {
        let first = Sample::new("one", &["man/adit.1", "README.md", "adit"]);
        let second = Sample::new("two", &["adit", "README.md", "man/adit.1"]);
        // Times differ from run to run; modes are those of two umasks.
        let readme = second.0.join("adit-1.2.3-x/README.md");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&readme, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let hour = std::time::Duration::from_secs(3600);
        let file = File::options().write(true).open(&readme).unwrap();
        file.set_modified(std::time::SystemTime::now() - hour)
            .unwrap();
        for (one, other, name) in [
            (first.archive(), second.archive(), "adit-1.2.3-x.tar.gz"),
            (first.zip(), second.zip(), "adit-1.2.3-x.zip"),
        ] {
            assert!(one.ends_with(name));
            assert_eq!(fs::read(one).unwrap(), fs::read(other).unwrap(), "{name}");
        }
    }

    #[test]
    fn entries_have_fixed_owners_modes_and_times() {
        let sample = Sample::new("modes", &["man/adit.1", "README.md", "adit"]);
        let file = File::open(sample.archive()).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            let header = entry.header();
            let owner = (header.uid().unwrap(), header.gid().unwrap());
            assert_eq!((owner, header.mtime().unwrap()), ((0, 0), 1_700_000_000));
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            seen.push((name, header.mode().unwrap()));
        }
        let expected = [
            ("adit-1.2.3-x/", 0o755),
            ("adit-1.2.3-x/README.md", 0o644),
            ("adit-1.2.3-x/adit", 0o755),
            ("adit-1.2.3-x/man/", 0o755),
            ("adit-1.2.3-x/man/adit.1", 0o644),
        ];
        assert_eq!(seen, expected.map(|(name, mode)| (name.to_owned(), mode)));
    }

    #[test]
    fn a_zip_has_the_contents_modes_and_the_time() {
        let sample = Sample::new("zip", &["man/adit.1", "README.md", "adit.exe"]);
        let mut archive = zip::ZipArchive::new(File::open(sample.zip()).unwrap()).unwrap();
        let mut seen = Vec::new();
        for at in 0..archive.len() {
            let mut entry = archive.by_index(at).unwrap();
            // 22:13:20 on 14 November 2023.
            let time = entry.last_modified().unwrap();
            assert_eq!((time.year(), time.month(), time.day()), (2023, 11, 14));
            assert_eq!((time.hour(), time.minute(), time.second()), (22, 13, 20));
            let name = entry.name().unwrap().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let mode = entry.unix_mode().unwrap() & 0o777;
            seen.push((name, mode, content));
        }
        let expected: [(&str, u32, &[u8]); 5] = [
            ("adit-1.2.3-x/", 0o755, b""),
            ("adit-1.2.3-x/README.md", 0o644, b"README.md"),
            ("adit-1.2.3-x/adit.exe", 0o755, b"MZ\x90\0adit.exe"),
            ("adit-1.2.3-x/man/", 0o755, b""),
            ("adit-1.2.3-x/man/adit.1", 0o644, b"man/adit.1"),
        ];
        let expected =
            expected.map(|(name, mode, content)| (name.to_owned(), mode, content.to_vec()));
        assert_eq!(seen, expected);
        assert!(dos_time(0).is_err(), "1970");
    }

    #[test]
    fn sums_are_those_of_sha256sum() {
        let sample = Sample::new("sums", &[]);
        fs::write(sample.0.join("b.zip"), "abc").unwrap();
        fs::write(sample.0.join("a.tar.gz"), "").unwrap();
        write_sums(&sample.0).unwrap();
        // A second run does not list the list.
        write_sums(&sample.0).unwrap();
        assert_eq!(
            fs::read_to_string(sample.0.join("SHA256SUMS")).unwrap(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.tar.gz\n\
             ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b.zip\n"
        );
    }
}
