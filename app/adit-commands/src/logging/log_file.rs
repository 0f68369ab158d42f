//! A log file that is replaced by a new one when it is full, or a day is over.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use jiff::civil::Date;

/// A log file.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    rotation: Option<Rotation>,
    /// Bytes in the file.
    size: u64,
    /// The day of its first message.
    day: Date,
}

/// The limits of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rotation {
    /// Size in bytes after which a new file begins.
    pub(super) max_size: u64,
    /// Number of earlier files that are kept; at least one.
    pub(super) keep: usize,
}

impl LogFile {
    /// Opens a file, or creates one that its owner alone can read: the log has the addresses of clients. Without
    /// limits it grows for ever.
    pub(super) fn open(path: &Path, rotation: Option<Rotation>, today: Date) -> io::Result<Self> {
        let file = open_for_appending(path)?;
        let metadata = file.metadata()?;
        let has_day = rotation.is_some() && metadata.len() > 0;
        let written = metadata.modified().ok().filter(|_| has_day);
        let written = written.and_then(|time| {
            let time = jiff::Timestamp::try_from(time).ok()?;
            Some(time.to_zoned_datetime(jiff::tz::TimeZone::system()).date())
        });
        Ok(Self {
            path: path.to_owned(),
            file,
            rotation,
            size: metadata.len(),
            day: written.unwrap_or(today),
        })
    }

    /// Appends a line that is written on this day. If the file cannot be replaced, it grows by as much again before the
    /// next attempt.
    pub(super) fn write_line(&mut self, line: &[u8], today: Date) -> io::Result<()> {
        let len = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if let Some(rotation) = self.rotation
            && self.size > 0
            && (self.day != today || self.size.saturating_add(len) > rotation.max_size)
        {
            let _ = self.rotate(rotation);
            (self.size, self.day) = (0, today);
        }
        self.file.write_all(line)?;
        self.size = self.size.saturating_add(len);
        Ok(())
    }

    /// Renames the file after its day, removes the oldest ones, and begins a new one.
    fn rotate(&mut self, rotation: Rotation) -> io::Result<()> {
        let mut earlier = earlier_files(&self.path)?;
        let next = earlier
            .iter()
            .filter(|file| file.day == self.day)
            .map(|file| file.number + 1)
            .max();
        let renamed = EarlierFile::new(&self.path, self.day, next.unwrap_or(1));
        fs::rename(&self.path, &renamed.path)?;
        earlier.push(renamed);
        earlier.sort_by_key(|file| (file.day, file.number));
        let excess = earlier.len().saturating_sub(rotation.keep);
        self.file = open_for_appending(&self.path)?;
        for file in earlier.into_iter().take(excess) {
            fs::remove_file(file.path)?;
        }
        Ok(())
    }
}

/// A file that was renamed to `NAME.DAY.NUMBER`.
#[derive(Debug)]
struct EarlierFile {
    path: PathBuf,
    day: Date,
    number: u32,
}

impl EarlierFile {
    fn new(log: &Path, day: Date, number: u32) -> Self {
        let mut path = log.as_os_str().to_owned();
        path.push(format!(".{day}.{number}"));
        Self {
            path: path.into(),
            day,
            number,
        }
    }
}

/// Returns the files that were renamed for a new one.
fn earlier_files(log: &Path) -> io::Result<Vec<EarlierFile>> {
    let folder = match log.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let other = path.file_name().unwrap_or_default().to_string_lossy();
        let rest = other.strip_prefix(&*name);
        let rest = rest.and_then(|rest| rest.strip_prefix('.')?.rsplit_once('.'));
        let parsed = rest.and_then(|(day, number)| Some((day.parse().ok()?, number.parse().ok()?)));
        if let Some((day, number)) = parsed {
            files.push(EarlierFile { path, day, number });
        }
    }
    Ok(files)
}

fn open_for_appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("adit-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<String> = names
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_new_file_begins_when_one_is_full_or_a_day_is_over() {
        let folder = Folder::new("log-rotation");
        let path = folder.0.join("a.log");
        let rotation = Rotation {
            max_size: 10,
            keep: 2,
        };
        let (monday, tuesday) = (date(2026, 11, 30), date(2026, 12, 1));
        // Neither is one of the earlier files.
        fs::write(folder.0.join("a.log.old"), "").unwrap();
        fs::write(folder.0.join("b.log.2026-11-30.1"), "").unwrap();
        let others = ["a.log.old", "b.log.2026-11-30.1"];
        let mut file = LogFile::open(&path, Some(rotation), monday).unwrap();
        file.write_line(b"12345\n", monday).unwrap();
        file.write_line(b"789\n", monday).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"12345\n789\n");
        file.write_line(b"a\n", monday).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"a\n");
        file.write_line(b"b\n", tuesday).unwrap();
        let two = ["a.log", "a.log.2026-11-30.1", "a.log.2026-11-30.2"];
        let mut all = [&two[..], &others].concat();
        all.sort_unstable();
        assert_eq!(folder.names(), all);
        file.write_line(b"more than ten bytes\n", tuesday).unwrap();
        let two = ["a.log", "a.log.2026-11-30.2", "a.log.2026-12-01.1"];
        let mut all = [&two[..], &others].concat();
        all.sort_unstable();
        assert_eq!(folder.names(), all);
        assert_eq!(
            fs::read(folder.0.join("a.log.2026-12-01.1")).unwrap(),
            b"b\n"
        );
        // A file that another program has renamed.
        fs::rename(&path, folder.0.join("moved")).unwrap();
        let mut file = LogFile::open(&path, Some(rotation), tuesday).unwrap();
        file.write_line(b"c\n", tuesday).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"c\n");
    }

    #[test]
    fn a_file_without_limits_grows() {
        let folder = Folder::new("log-growth");
        let path = folder.0.join("a.log");
        let (monday, tuesday) = (date(2026, 11, 30), date(2026, 12, 1));
        let mut file = LogFile::open(&path, None, monday).unwrap();
        for day in [monday, tuesday] {
            file.write_line(&[b'x'; 5000], day).unwrap();
        }
        assert_eq!(fs::metadata(&path).unwrap().len(), 10_000);
        assert_eq!(folder.names(), ["a.log"]);
    }
}
