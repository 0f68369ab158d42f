//! Waiting for changes of files, as editors and other programs make them.
//!
//! On Linux inotify reports events in the folders of the files: an editor often writes another file and renames it,
//! so that a watch on the file itself would end with its first change. Elsewhere, and where inotify is not
//! available, the files are compared at intervals.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::time::sleep;

/// Time without a further event after which a change is complete.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// Interval of comparisons without inotify.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A version of a file: modification time and size in bytes; `None` if there is no such file.
type FileVersion = Option<(SystemTime, u64)>;

/// Waits for changes of a set of files.
#[derive(Debug)]
pub struct FileWatch {
    files: Vec<(PathBuf, FileVersion)>,
    #[cfg(target_os = "linux")]
    events: Option<inotify::FolderEvents>,
}

impl FileWatch {
    /// Starts to watch these files, which need not exist.
    #[must_use]
    pub fn new(files: impl IntoIterator<Item = PathBuf>) -> Self {
        let files: BTreeSet<PathBuf> = files.into_iter().collect();
        #[cfg(target_os = "linux")]
        let events = inotify::FolderEvents::new(&folders_of(&files))
            .inspect_err(|why| tracing::debug!("inotify is not available: {why}"))
            .ok();
        Self {
            files: files
                .into_iter()
                .map(|path| {
                    let version = version_of(&path);
                    (path, version)
                })
                .collect(),
            #[cfg(target_os = "linux")]
            events,
        }
    }

    /// Waits until one of the files has changed and none of them changes any more.
    ///
    /// # Cancel safety
    /// Cancel-safe: a change that was not reported yet is found again.
    pub async fn changed(&mut self) {
        loop {
            self.wait_for_event().await;
            if self.compare() {
                return;
            }
        }
    }

    /// Waits for an event, and then for the end of further ones.
    async fn wait_for_event(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(events) = &mut self.events {
            events.next().await;
            while tokio::time::timeout(SETTLE_TIME, events.next())
                .await
                .is_ok()
            {}
            return;
        }
        sleep(POLL_INTERVAL).await;
        // A file that is being written changes again.
        while self
            .files
            .iter()
            .any(|(path, known)| version_of(path) != *known)
        {
            let before: Vec<FileVersion> = self
                .files
                .iter()
                .map(|(path, _)| version_of(path))
                .collect();
            sleep(SETTLE_TIME).await;
            if self
                .files
                .iter()
                .map(|(path, _)| version_of(path))
                .eq(before)
            {
                return;
            }
        }
    }

    /// Returns true if a file differs from its last version, and remembers the new ones.
    fn compare(&mut self) -> bool {
        let mut changed = false;
        for (path, known) in &mut self.files {
            let now = version_of(path);
            changed |= now != *known;
            *known = now;
        }
        changed
    }
}

/// Returns the folders of files.
fn folders_of(files: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let folder = |file: &PathBuf| match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    files.iter().map(folder).collect()
}

fn version_of(path: &Path) -> FileVersion {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
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
        let mut watch = FileWatch::new([file.clone()]);
        let long = Duration::from_secs(10);

        fs::write(&file, "other").unwrap();
        timeout(long, watch.changed()).await.unwrap();

        fs::write(folder.join("draft"), "a third one").unwrap();
        fs::rename(folder.join("draft"), &file).unwrap();
        timeout(long, watch.changed()).await.unwrap();

        fs::write(folder.join("neighbour"), "x").unwrap();
        let quiet = timeout(Duration::from_millis(1500), watch.changed()).await;
        fs::remove_dir_all(&folder).unwrap();
        assert!(quiet.is_err(), "the file is the same");
    }
}
