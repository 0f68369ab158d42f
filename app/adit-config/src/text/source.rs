//! Access to files and the environment. No other module reads them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use adit_wire::{subslice, u64_from};
use zeroize::Zeroizing;

/// Maximum size of a file of secrets or users, in bytes.
const MAX_SECRET_FILE: u64 = 1024 * 1024;

/// The files and variables that `@file` and `$NAME` refer to. [`SystemSources`] is the real implementation.
pub trait Sources {
    /// Reads the text of a file.
    fn read_file(&self, path: &Path) -> io::Result<FileText>;
    /// Like [`Sources::read_file`], for a long file of at most `limit` bytes.
    fn read_file_up_to(&self, path: &Path, limit: u64) -> io::Result<FileText> {
        let file = self.read_file(path)?;
        check_length(file.text.as_bytes(), limit)?;
        Ok(file)
    }
    /// Returns the value of an environment variable, if it is set and UTF-8.
    fn read_variable(&self, name: &str) -> Option<Zeroizing<String>>;
    /// Returns the names of the entries of a folder, in any order. Without an implementation, folders cannot be
    /// listed.
    fn list_names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let _ = folder;
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Returns a path that is the same for all paths of one file.
    fn canonical_path(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// The content of a file.
#[derive(Debug)]
pub struct FileText {
    /// The text.
    pub text: Zeroizing<String>,
    /// True if users other than the owner and the group may read the file.
    pub readable_by_others: bool,
}

/// The files and the environment of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemSources;

impl Sources for SystemSources {
    fn read_file(&self, path: &Path) -> io::Result<FileText> {
        read_file(path, MAX_SECRET_FILE)
    }

    fn read_file_up_to(&self, path: &Path, limit: u64) -> io::Result<FileText> {
        read_file(path, limit)
    }

    fn read_variable(&self, name: &str) -> Option<Zeroizing<String>> {
        std::env::var(name).ok().map(Zeroizing::new)
    }

    fn list_names(&self, folder: &Path) -> io::Result<Vec<String>> {
        list_file_names(folder)
    }

    fn canonical_path(&self, path: &Path) -> PathBuf {
        path.canonicalize().unwrap_or_else(|_| path.to_owned())
    }
}

/// The files and the environment of this process; remembers which files were read and which folders listed.
#[derive(Debug, Default)]
pub struct RecordingSources {
    files: Mutex<BTreeSet<PathBuf>>,
}

impl RecordingSources {
    /// Returns the files that were read, or that could not be, and the folders that were listed.
    #[must_use]
    pub fn into_files(self) -> BTreeSet<PathBuf> {
        self.files
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, path: &Path) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(path.to_owned());
    }
}

impl Sources for RecordingSources {
    fn read_file(&self, path: &Path) -> io::Result<FileText> {
        self.record(path);
        SystemSources.read_file(path)
    }

    fn read_file_up_to(&self, path: &Path, limit: u64) -> io::Result<FileText> {
        self.record(path);
        SystemSources.read_file_up_to(path, limit)
    }

    fn read_variable(&self, name: &str) -> Option<Zeroizing<String>> {
        SystemSources.read_variable(name)
    }

    fn list_names(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.record(or_current_folder(folder));
        SystemSources.list_names(folder)
    }

    fn canonical_path(&self, path: &Path) -> PathBuf {
        SystemSources.canonical_path(path)
    }
}

/// Returns the names of the entries of a folder. Names that are not UTF-8 are skipped.
///
/// # Errors
///
/// The folder cannot be read.
pub fn list_file_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(or_current_folder(folder))? {
        // A pattern is text and cannot match a name that is not UTF-8.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// Returns the path of a folder; the current one is not an empty path.
fn or_current_folder(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() {
        return Path::new(".");
    }
    folder
}

/// Reads the text of a file of at most `limit` bytes.
///
/// # Errors
///
/// The file cannot be opened, is not UTF-8, or is longer than `limit`
/// ([`io::ErrorKind::FileTooLarge`]).
pub fn read_file(path: &Path, limit: u64) -> io::Result<FileText> {
    let file = File::open(path)?;
    let readable_by_others = is_readable_by_others(&file)?;
    // A buffer that grows while the file is read would leave copies of the secret in memory.
    let expected = file.metadata()?.len().min(limit).saturating_add(1);
    let mut bytes = Zeroizing::new(Vec::with_capacity(
        usize::try_from(expected).unwrap_or_default(),
    ));
    file.take(limit + 1).read_to_end(&mut bytes)?;
    check_length(&bytes, limit)?;
    let text = decode_utf8(core::mem::take(&mut *bytes))?;
    Ok(FileText {
        text,
        readable_by_others,
    })
}

/// Returns the text of these bytes, without a copy.
///
/// # Errors
///
/// The bytes are not UTF-8. The message has the line and column of the first wrong byte, and no part of the text.
pub fn decode_utf8(bytes: Vec<u8>) -> io::Result<Zeroizing<String>> {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok(Zeroizing::new(text)),
        Err(error) => error,
    };
    let valid_len = error.utf8_error().valid_up_to();
    let bytes = Zeroizing::new(error.into_bytes());
    let message = if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        "it is UTF-16; save it as UTF-8".to_owned()
    } else {
        let before = subslice(&bytes, ..valid_len);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let start = before.iter().rposition(|byte| *byte == b'\n');
        let last = subslice(before, start.map_or(0, |at| at + 1)..);
        // Bytes that continue a character are not counted.
        let column = 1 + last.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        format!("line {line}, column {column} is not UTF-8; save it as UTF-8")
    };
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

/// Returns an error if `text` is longer than `limit` bytes.
fn check_length(text: &[u8], limit: u64) -> io::Result<()> {
    if u64_from(text.len()) > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("longer than {limit} bytes"),
        ));
    }
    Ok(())
}

/// True if users other than the owner and the group may read the file.
#[cfg(unix)]
fn is_readable_by_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata()?;
    Ok(metadata.is_file() && metadata.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_have_a_place() {
        let said = |bytes: &[u8]| decode_utf8(bytes.to_vec()).unwrap_err().to_string();
        let rest = "is not UTF-8; save it as UTF-8";
        assert_eq!(
            said(b"a\n\xc3\xbcb\xff\n"),
            format!("line 2, column 3 {rest}")
        );
        assert_eq!(said(b"\x80"), format!("line 1, column 1 {rest}"));
        assert_eq!(said(b"\xff\xfea\0"), "it is UTF-16; save it as UTF-8");
        assert_eq!(decode_utf8(b"abc".to_vec()).unwrap().as_str(), "abc");
    }

    #[test]
    fn long_files_are_refused() {
        let path = std::env::temp_dir().join(format!("adit-config-{}", std::process::id()));
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_file(&path, 5).unwrap().text.as_str(), "12345");
        let why = read_file(&path, 4).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(why.to_string(), "longer than 4 bytes");
    }
}
