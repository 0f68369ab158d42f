//! Files of lines that several programs write to, one at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{is_file_at, try_lock};

/// Maximum time to wait while another program holds the lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between attempts to lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// Number of times the file may be replaced before it is locked.
const MAX_ATTEMPTS: u32 = 16;

/// A file of lines that is locked (`flock`; on Windows, behind its end) against other programs that do the same: none of them can write
/// between a read and a write of this one.
#[derive(Debug)]
pub struct LineFile {
    file: File,
    path: PathBuf,
    /// False for `/dev/null`, say, which has no lines and needs no lock.
    regular: bool,
}

impl LineFile {
    /// Opens and locks a file; if it does not exist, it is created for the user alone, with its folders.
    /// Links are followed: the file is the user's own, and may be stored elsewhere.
    ///
    /// # Errors
    /// The file or its folder cannot be created or opened, or another program holds the lock for more than
    /// five seconds.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            super::make_folder(folder)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        for _ in 0..MAX_ATTEMPTS {
            let file = options.open(path)?;
            let path = fs::canonicalize(path)?;
            let regular = file.metadata()?.is_file();
            let lines = Self {
                file,
                path,
                regular,
            };
            if !regular {
                return Ok(lines);
            }
            lock_file(&lines.file)?;
            if lines.is_current() {
                return Ok(lines);
            }
        }
        Err(io::Error::other("the file is being replaced repeatedly"))
    }

    /// Returns true if the path still leads to this file: it may have been replaced during the wait.
    fn is_current(&self) -> bool {
        is_file_at(&self.file, &self.path).unwrap_or(false)
    }

    /// Appends a line, given without its line end, with one write at the current end of the file. If the
    /// last line has no line end, one is written first, so that the two lines stay separate. A line that
    /// cannot be written whole is removed again.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn append_line(&mut self, line: &str) -> io::Result<()> {
        let mut last = [b'\n'];
        let len = match self.regular {
            true => self.file.seek(SeekFrom::End(0))?,
            false => 0,
        };
        if len > 0 {
            self.file.seek(SeekFrom::End(-1))?;
            self.file.read_exact(&mut last)?;
        }
        let begin = if last == *b"\n" { "" } else { "\n" };
        let text = format!("{begin}{line}\n");
        let written = self.file.write_all(text.as_bytes());
        if !self.regular {
            return written;
        }
        written
            .and_then(|()| self.file.sync_all())
            .inspect_err(|_| {
                // Half a line would corrupt the next one; if even this fails, the file stays as it is.
                let _ = self.file.set_len(len);
            })
    }

    /// Replaces the whole file with new content.
    ///
    /// # Errors
    /// The errors of the system; see [`write_atomically`](super::write_atomically).
    pub fn replace_content(self, content: &[u8]) -> io::Result<()> {
        super::write_atomically(&self.path, content)
    }
}

/// Waits for the lock of a file, if its file system supports locks.
fn lock_file(file: &File) -> io::Result<()> {
    let since = Instant::now();
    loop {
        match try_lock(file) {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if since.elapsed() < LOCK_TIMEOUT => {
                sleep(LOCK_RETRY_INTERVAL);
            }
            Err(TryLockError::WouldBlock) => {
                let why = "another program holds the file";
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
            }
            Err(TryLockError::Error(why)) if why.kind() == io::ErrorKind::Interrupted => {}
            // Without locks one write is still one line.
            Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the path of a folder that does not exist. In wine, processes often have the ID of an earlier one.
    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("adit-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    fn append(path: &Path, line: &str) {
        LineFile::open(path).unwrap().append_line(line).unwrap();
    }

    #[test]
    fn lines_do_not_grow_together() {
        let folder = folder("lines");
        let path = folder.join("deep").join("file");
        append(&path, "one");
        append(&path, "two");
        assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");
        #[cfg(unix)]
        for (path, mode) in [(&*path, 0o600), (path.parent().unwrap(), 0o700)] {
            use std::os::unix::fs::PermissionsExt;
            let found = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{}", path.display());
        }
        fs::write(&path, "no end").unwrap();
        append(&path, "three");
        assert_eq!(fs::read(&path).unwrap(), b"no end\nthree\n");
        #[cfg(unix)]
        append(Path::new("/dev/null"), "nothing");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_locked_file_is_still_read() {
        let folder = folder("locked");
        let path = folder.join("file");
        append(&path, "one");
        let held = LineFile::open(&path).unwrap();
        assert_eq!(super::super::read_bounded(&path, 100).unwrap(), b"one\n");
        let other = File::options().append(true).open(&path).unwrap();
        assert!(matches!(try_lock(&other), Err(TryLockError::WouldBlock)));
        drop((held, other));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_new_file_of_the_same_length_is_another() {
        let folder = folder("other");
        let path = folder.join("file");
        append(&path, "one");
        let old = LineFile::open(&path).unwrap();
        assert!(old.is_current());
        fs::rename(&path, folder.join("old")).unwrap();
        append(&path, "two");
        assert!(!old.is_current());
        drop(old);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn who_waits_finds_the_file_that_took_its_place() {
        let folder = folder("turns");
        let path = folder.join("file");
        append(&path, "one");
        let held = LineFile::open(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| append(&path, "three"));
            // It waits for this process or starts later; the line is not lost either way.
            sleep(LOCK_RETRY_INTERVAL * 3);
            assert_eq!(fs::read(&path).unwrap(), b"one\n");
            held.replace_content(b"two\n").unwrap();
        });
        assert_eq!(fs::read(&path).unwrap(), b"two\nthree\n");
        fs::remove_dir_all(folder).unwrap();
    }
}
