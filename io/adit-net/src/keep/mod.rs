//! Files that outlive us: replaced so that a crash leaves the old one or the new one, never half;
//! or longer by whole lines.

mod lines;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

pub use lines::Lines;

/// Writes a whole file that the user alone can read (REL-5): beside it, to the disk, then renamed.
/// Folders that are missing are made.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let mut fresh_name = name.to_owned();
    fresh_name.push(".new");
    let fresh = folder.join(fresh_name);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
        options.mode(0o600);
        // Left behind by a crash, perhaps with other rights.
        if let Ok(old) = fs::metadata(&fresh) {
            let mut mode = old.permissions();
            mode.set_mode(0o600);
            fs::set_permissions(&fresh, mode)?;
        }
    }
    let mut file = options.open(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(())
}

/// The content of a file of at most `limit` octets. Of a longer one nothing is read: who sees a part
/// of it takes what is missing for what was never there.
///
/// # Errors
/// [`io::ErrorKind::FileTooLarge`], and what the system says.
pub fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(most).read_to_end(&mut content)?;
    if content.len() > limit {
        let why = format!("the file is longer than {limit} octets, so nothing of it is read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = std::env::temp_dir().join(format!("adit-keep-{}", std::process::id()));
        let path = folder.join("deep").join("file.json");
        write(&path, b"one").unwrap();
        write(&path, b"2").unwrap();
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

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let path = std::env::temp_dir().join(format!("adit-read-{}", std::process::id()));
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        let why = read(&path, 4).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::FileTooLarge);
        fs::remove_file(path).unwrap();
    }
}
