//! Waiting for changes of files, as editors and other programs make them.
//!
//! On Linux inotify reports events in the folders of the files: an editor often writes another file and renames it,
//! so that a watch on the file itself would end with its first change. Elsewhere, and where inotify is not
//! available, the files are compared at intervals.

use std::collections::BTreeMap;
#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::sleep;
#[cfg(target_os = "linux")]
use tokio::time::timeout;

/// Time without a further event after which a change is complete.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// Interval of comparisons without inotify.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A version of a file: modification time and size in bytes; `None` if there is no such file. Of a folder it is a hash of
/// the names in it.
type FileVersion = Option<(SystemTime, u64)>;

/// The versions of a set of files and folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileVersions(BTreeMap<PathBuf, FileVersion>);

impl FileVersions {
    /// Returns the current versions of these files, which need not exist.
    #[must_use]
    pub fn current<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        let version = |path: &'a Path| (path.to_owned(), version_of(path));
        Self(files.into_iter().map(version).collect())
    }

    /// Returns the versions of these files in `self`, and the current ones of those that it does not have.
    #[must_use]
    pub fn of<'a>(&self, files: impl IntoIterator<Item = &'a Path>) -> Self {
        let version = |path: &'a Path| {
            let known = self.0.get(path).copied();
            (path.to_owned(), known.unwrap_or_else(|| version_of(path)))
        };
        Self(files.into_iter().map(version).collect())
    }

    /// Returns the files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    fn now(&self) -> Self {
        Self::current(self.files())
    }
}

/// Waits for changes of a set of files.
#[derive(Debug)]
pub struct FileWatch {
    known: FileVersions,
    /// True until the files were compared for the first time.
    is_new: bool,
    #[cfg(target_os = "linux")]
    events: Option<inotify::FolderEvents>,
}

impl FileWatch {
    /// Watches files that had these versions.
    #[must_use]
    pub fn new(known: FileVersions) -> Self {
        #[cfg(target_os = "linux")]
        let events = inotify::FolderEvents::new(&folders_of(&known))
            .inspect_err(|why| tracing::debug!("inotify is not available: {why}"))
            .ok();
        Self {
            known,
            is_new: true,
            #[cfg(target_os = "linux")]
            events,
        }
    }

    /// Waits until one of the files has changed and none of them changes any more.
    ///
    /// # Cancel safety
    /// Cancel-safe: a change that was not reported yet is found at the next event, or after the next start.
    pub async fn changed(&mut self) {
        loop {
            // Changes from before the watch have no event.
            if !std::mem::take(&mut self.is_new) {
                self.wait_for_event().await;
            }
            let now = self.known.now();
            if now != self.known {
                self.known = now;
                return;
            }
        }
    }

    /// Waits for an event, and then for the end of further ones.
    async fn wait_for_event(&self) {
        #[cfg(target_os = "linux")]
        if let Some(events) = &self.events {
            events.next().await;
            while timeout(SETTLE_TIME, events.next()).await.is_ok() {}
            return;
        }
        let mut now = self.known.now();
        while now == self.known {
            sleep(POLL_INTERVAL).await;
            now = self.known.now();
        }
        // A file that is being written changes again.
        loop {
            sleep(SETTLE_TIME).await;
            let later = self.known.now();
            if std::mem::replace(&mut now, later.clone()) == later {
                return;
            }
        }
    }
}

/// Returns the folders of files, and the folders themselves.
#[cfg(target_os = "linux")]
fn folders_of(files: &FileVersions) -> BTreeSet<PathBuf> {
    let folder = |file: &Path| match file.parent() {
        _ if file.is_dir() => file.to_owned(),
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    files.files().map(folder).collect()
}

fn version_of(path: &Path) -> FileVersion {
    let meta = std::fs::metadata(path).ok()?;
    if meta.is_dir() {
        return Some((SystemTime::UNIX_EPOCH, hash_of_names(path)?));
    }
    Some((meta.modified().ok()?, meta.len()))
}

/// Returns a hash of the names in a folder, without those that begin with a dot. The modification time would change with
/// each file that is replaced.
fn hash_of_names(folder: &Path) -> Option<u64> {
    let entries = std::fs::read_dir(folder).ok()?;
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<OsString> = names
        .filter(|name| !name.as_encoded_bytes().starts_with(b"."))
        .collect();
    names.sort_unstable();
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(target_os = "linux")]
mod inotify {
    use std::collections::BTreeSet;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::path::PathBuf;

    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    use rustix::io::Errno;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// Size of a read: many events, which have 16 bytes and a name of up to 255.
    const READ_LEN: usize = 4096;

    /// Events in folders: files that were written, created, renamed or removed.
    #[derive(Debug)]
    pub(super) struct FolderEvents(AsyncFd<OwnedFd>);

    #[allow(
        deprecated,
        reason = "an `OwnedFd` keeps its descriptor as long as it lives, which is all that is required"
    )]
    fn register_descriptor(events: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
        AsyncFd::with_interest(events, Interest::READABLE)
    }

    impl FolderEvents {
        pub(super) fn new(folders: &BTreeSet<PathBuf>) -> io::Result<Self> {
            let events = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let flags = WatchFlags::CLOSE_WRITE
                | WatchFlags::CREATE
                | WatchFlags::MOVED_FROM
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE;
            for folder in folders {
                add_watch(&events, folder, flags)?;
            }
            Ok(Self(register_descriptor(events)?))
        }

        /// Waits for events, and discards their content: the files are compared in any case.
        pub(super) async fn next(&self) {
            let mut bytes = [0; READ_LEN];
            loop {
                let Ok(mut ready) = self.0.readable().await else {
                    // The runtime is about to end.
                    return std::future::pending().await;
                };
                match rustix::io::read(self.0.get_ref(), &mut bytes) {
                    Ok(_) => return,
                    Err(Errno::INTR) => {}
                    Err(_) => ready.clear_ready(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio::time::timeout;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("adit-watch-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[tokio::test]
    async fn a_written_and_a_replaced_file_are_noticed_and_its_neighbours_are_not() {
        let folder = folder("files");
        let file = folder.join("adit.toml");
        fs::write(&file, "one").unwrap();
        let mut watch = FileWatch::new(FileVersions::current([file.as_path()]));
        let long = Duration::from_secs(10);

        fs::write(&file, "other").unwrap();
        timeout(long, watch.changed()).await.unwrap();

        fs::write(folder.join("draft"), "a third one").unwrap();
        fs::rename(folder.join("draft"), &file).unwrap();
        timeout(long, watch.changed()).await.unwrap();

        // A watch that starts later finds what has changed since the file was read.
        let read = FileVersions::current([file.as_path()]);
        fs::write(&file, "a fourth version").unwrap();
        let mut watch = FileWatch::new(read);
        timeout(long, watch.changed()).await.unwrap();

        fs::write(folder.join("neighbour"), "x").unwrap();
        let quiet = timeout(Duration::from_millis(1500), watch.changed()).await;
        fs::remove_dir_all(&folder).unwrap();
        assert!(quiet.is_err(), "the file is the same");
    }

    #[tokio::test]
    async fn a_new_name_in_a_folder_is_noticed() {
        let folder = folder("folder");
        fs::write(folder.join("a.toml"), "one").unwrap();
        let mut watch = FileWatch::new(FileVersions::current([folder.as_path()]));
        let short = Duration::from_millis(1500);
        // A file that is replaced has the same name.
        fs::write(folder.join(".draft"), "two").unwrap();
        fs::rename(folder.join(".draft"), folder.join("a.toml")).unwrap();
        assert!(timeout(short, watch.changed()).await.is_err());
        fs::write(folder.join("b.toml"), "three").unwrap();
        let noticed = timeout(Duration::from_secs(10), watch.changed()).await;
        fs::remove_dir_all(&folder).unwrap();
        noticed.unwrap();
    }
}
