//! Files and the environment: the only module that reads them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use adit_wire::u64_from;
use zeroize::Zeroizing;

/// Bytes of a file of secrets or users that are read at most.
const MAX_SECRET_FILE: u64 = 1024 * 1024;

/// Where `@file` and `$NAME` are looked up. [`Machine`] is the real one.
pub trait Sources {
    /// The text of a file.
    fn file(&self, path: &Path) -> io::Result<FileText>;
    /// As [`Sources::file`], for a file that may be long: at most `limit` bytes.
    fn long_file(&self, path: &Path, limit: u64) -> io::Result<FileText> {
        let file = self.file(path)?;
        fits(&file.text, limit)?;
        Ok(file)
    }
    /// The value of an environment variable, if it is set and UTF-8.
    fn variable(&self, name: &str) -> Option<Zeroizing<String>>;
}

/// What a file holds.
#[derive(Debug)]
pub struct FileText {
    /// The content.
    pub text: Zeroizing<String>,
    /// Users other than the owner and the group may read it.
    pub readable_by_others: bool,
}

/// The files and the environment of this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

impl Sources for Machine {
    fn file(&self, path: &Path) -> io::Result<FileText> {
        read_file(path, MAX_SECRET_FILE)
    }

    fn long_file(&self, path: &Path, limit: u64) -> io::Result<FileText> {
        read_file(path, limit)
    }

    fn variable(&self, name: &str) -> Option<Zeroizing<String>> {
        std::env::var(name).ok().map(Zeroizing::new)
    }
}

/// The names of what stands in a folder.
pub fn file_names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        // A name that is no text is none that a pattern could describe.
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

/// The text of a file of at most `limit` bytes.
pub fn read_file(path: &Path, limit: u64) -> io::Result<FileText> {
    let file = File::open(path)?;
    let readable_by_others = readable_by_others(&file)?;
    // A text that grows while it is read would leave parts of it behind in memory.
    let expected = file.metadata()?.len().min(limit).saturating_add(1);
    let mut text = Zeroizing::new(String::with_capacity(
        usize::try_from(expected).unwrap_or_default(),
    ));
    file.take(limit + 1).read_to_string(&mut text)?;
    fits(&text, limit)?;
    Ok(FileText {
        text,
        readable_by_others,
    })
}

fn fits(text: &str, limit: u64) -> io::Result<()> {
    if u64_from(text.len()) > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("longer than {limit} bytes"),
        ));
    }
    Ok(())
}

#[cfg(unix)]
fn readable_by_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata()?;
    Ok(metadata.is_file() && metadata.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn readable_by_others(_: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

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
