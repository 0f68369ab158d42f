//! Files that outlive the process: replaced so that a crash leaves either the old or the new one, never a
//! mixture, or extended by whole lines.

mod line_file;
#[cfg(unix)]
mod owner;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use adit_wire::{Entropy, u64_from};

pub use line_file::LineFile;
#[cfg(unix)]
pub use owner::FileOwner;
#[cfg(unix)]
use unix::{is_file_at, make_folder, replace_file, try_lock};
#[cfg(windows)]
pub use windows::FileOwner;
#[cfg(windows)]
pub(crate) use windows::PrivateSecurity;
#[cfg(windows)]
use windows::{is_file_at, make_folder, replace_file, try_lock};

use crate::system::SystemRng;

/// Writes a whole file that only the user can read (REL-5): to a temporary file beside it, synced to the
/// disk, then renamed. Missing folders are created for the user alone.
///
/// Users with write access to the folder cannot redirect the write: the temporary file has an unpredictable
/// name and is new (`O_EXCL`), links are not followed, and a link with the name of the file is itself
/// replaced. Processes that have the old file open, and links to it, keep the old content.
///
/// # Errors
/// The folder cannot be created or opened, or the file cannot be written; the old file is unchanged then.
pub fn write_atomically(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    make_folder(folder)?;
    replace_file(folder, name, content)
}

/// Returns an unpredictable file name.
fn fresh_name() -> String {
    let mut rng = [0; 16];
    SystemRng.fill(&mut rng);
    format!(".adit-{:032x}", u128::from_le_bytes(rng))
}

/// Reads a file of at most `limit` bytes. Nothing is read of a longer one: a caller that sees a part of it
/// would take the missing rest for absent.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`], and the errors of the system.
pub fn read_bounded(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    read_whole(File::open(path)?, limit)
}

fn read_whole(file: File, limit: usize) -> io::Result<Vec<u8>> {
    // Allocate enough at once: growing would leave copies of a secret behind.
    let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    let mut content = Vec::with_capacity(len.min(limit).saturating_add(1));
    let most = u64_from(limit).saturating_add(1);
    file.take(most).read_to_end(&mut content)?;
    if content.len() > limit {
        let why = format!("the file is longer than {limit} bytes and is not read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = std::env::temp_dir().join(format!("adit-keep-{}", std::process::id()));
        let path = folder.join("deep").join("file.json");
        write_atomically(&path, b"one").unwrap();
        write_atomically(&path, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    /// If the file were written in place, both would have the new content.
    #[test]
    #[cfg(unix)]
    fn the_old_file_stays_as_it_was_for_who_has_it() {
        use std::os::unix::fs::MetadataExt;

        let folder = std::env::temp_dir().join(format!("adit-old-{}", std::process::id()));
        let (path, link) = (folder.join("file"), folder.join("link"));
        write_atomically(&path, b"the old content").unwrap();
        fs::hard_link(&path, &link).unwrap();
        let mut open = File::open(&path).unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        write_atomically(&path, b"new").unwrap();
        let mut read = String::new();
        open.read_to_string(&mut read).unwrap();
        assert_eq!(read, "the old content");
        assert_eq!(fs::read(&link).unwrap(), b"the old content");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_ne!(fs::metadata(&path).unwrap().ino(), before);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    #[cfg(unix)]
    fn links_lead_nowhere() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = std::env::temp_dir().join(format!("adit-led-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let victim = folder.join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o644)).unwrap();
        let path = folder.join("file");
        // The result of an earlier write, and the name of the file itself.
        for link in [folder.join("file.new"), path.clone()] {
            symlink(&victim, link).unwrap();
        }
        write_atomically(&path, b"content").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"content");
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        let mode = fs::metadata(&victim).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
        // A failed rename leaves no file behind.
        let taken = folder.join("taken");
        fs::create_dir_all(taken.join("in it")).unwrap();
        write_atomically(&taken, b"content").unwrap_err();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let path = std::env::temp_dir().join(format!("adit-read-{}", std::process::id()));
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
        let why = read_bounded(&path, 4).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::FileTooLarge);
        fs::remove_file(path).unwrap();
    }
}
