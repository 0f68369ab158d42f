//! Files that outlive us: replaced so that a crash leaves the old one or the new one, never half;
//! or longer by whole lines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

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

/// Adds a line, without its end, to a file that others may lengthen too; one that is not there is
/// made for the user alone, with its folders. A last line that was left without an end gets it
/// first, so that the two do not grow together.
///
/// # Errors
/// The file or its folder cannot be made, read or written.
pub fn append_line(path: &Path, line: &str) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        let mut made = fs::DirBuilder::new();
        made.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut made, 0o700);
        made.create(folder)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let begin = if last == *b"\n" { "" } else { "\n" };
    // By one call, which goes to the end wherever that is by now.
    file.write_all(format!("{begin}{line}\n").as_bytes())
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
    fn lines_do_not_grow_together() {
        let folder = std::env::temp_dir().join(format!("adit-lines-{}", std::process::id()));
        let path = folder.join("deep").join("file");
        append_line(&path, "one").unwrap();
        append_line(&path, "two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
        #[cfg(unix)]
        for (path, mode) in [(&*path, 0o600), (path.parent().unwrap(), 0o700)] {
            use std::os::unix::fs::PermissionsExt;
            let found = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{}", path.display());
        }
        fs::write(&path, "no end").unwrap();
        append_line(&path, "three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"no end\nthree\n");
        fs::remove_dir_all(folder).unwrap();
    }
}
