//! Copies of many files: a queue of jobs, and workers that take from it.
//!
//! Folders are jobs as well: the worker that takes one creates its copy and adds the entries to the queue. The
//! newest job is taken first, so that the queue stays short. Times and permissions of folders are set at the end,
//! because every new file would change them.

use std::cell::{Cell, RefCell};
use std::fs;
use std::future::{Future, poll_fn};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::Poll;

use adit_sftp::local::{apply_attrs, attrs_from_metadata};
use adit_ssh::client::Session;
use adit_ssh_proto::sftp::{FileAttrs, FileType};
use tokio::sync::Notify;

use super::local::{path_bytes, path_from_bytes};
use super::names::{display_path, join_path};
use super::there::make_folder;
use super::{CopyError, CopyOptions, Remote};

/// Number of channels that copy a tree in parallel.
const MAX_WORKERS: usize = 4;
/// Maximum folder depth: links may form cycles.
pub(super) const MAX_DEPTH: usize = 64;

/// A file or folder to copy.
#[derive(Debug)]
pub(crate) enum CopyJob {
    /// Download from the host.
    Get {
        /// Remote path.
        from: Vec<u8>,
        /// Attributes, if known; not those of a symbolic link.
        attrs: Option<FileAttrs>,
        /// Local path.
        to: PathBuf,
        /// Depth in the tree.
        depth: usize,
    },
    /// Upload to the host.
    Put {
        /// Local path.
        from: PathBuf,
        /// Remote path.
        to: Vec<u8>,
        /// Depth in the tree.
        depth: usize,
    },
}

/// The future of a worker with its own channel.
type Worker<'a> = Pin<Box<dyn Future<Output = Result<(), CopyError>> + 'a>>;

struct JobQueue<'a> {
    jobs: RefCell<Vec<CopyJob>>,
    busy: Cell<usize>,
    more: Notify,
    how: &'a CopyOptions,
    /// Local and remote folders whose attributes are set at the end.
    here: RefCell<Vec<(PathBuf, FileAttrs)>>,
    there: RefCell<Vec<(Vec<u8>, FileAttrs)>>,
}

/// Runs all jobs. An error of one job is reported, and the others continue.
///
/// # Errors
/// The session failed.
pub(crate) async fn run_jobs(
    remote: &Remote,
    session: &Session,
    mut jobs: Vec<CopyJob>,
    how: &CopyOptions,
) -> Result<(), CopyError> {
    let alone = jobs.len() == 1 && !how.recursive;
    jobs.reverse();
    let queue = JobQueue {
        jobs: RefCell::new(jobs),
        busy: Cell::new(0),
        more: Notify::new(),
        how,
        here: RefCell::default(),
        there: RefCell::default(),
    };
    if alone {
        return queue.run_worker(remote).await;
    }
    let mut workers: Vec<Worker<'_>> = Vec::new();
    for _ in 1..MAX_WORKERS {
        workers.push(Box::pin(async {
            // A server may allow fewer channels.
            match Remote::open(session).await {
                Ok(remote) => queue.run_worker(&remote).await,
                Err(_) => Ok(()),
            }
        }));
    }
    workers.push(Box::pin(queue.run_worker(remote)));
    join_workers(workers).await?;
    queue.apply_folder_attributes(remote).await
}

/// Waits for all workers, or for the first that fails.
async fn join_workers(mut workers: Vec<Worker<'_>>) -> Result<(), CopyError> {
    poll_fn(|cx| {
        let mut failed = None;
        workers.retain_mut(|worker| match worker.as_mut().poll(cx) {
            Poll::Pending => true,
            Poll::Ready(outcome) => {
                failed = failed.take().or_else(|| outcome.err());
                false
            }
        });
        match failed {
            Some(fault) => Poll::Ready(Err(fault)),
            None if workers.is_empty() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    })
    .await
}

impl JobQueue<'_> {
    /// Runs jobs until there are none left and no busy worker can add more.
    async fn run_worker(&self, remote: &Remote) -> Result<(), CopyError> {
        loop {
            let more = self.more.notified();
            let job = self.jobs.borrow_mut().pop();
            match job {
                Some(job) => {
                    self.busy.set(self.busy.get() + 1);
                    let outcome = self.run_job(remote, job).await;
                    self.busy.set(self.busy.get() - 1);
                    self.more.notify_waiters();
                    outcome?;
                }
                None if self.busy.get() == 0 => return Ok(()),
                None => more.await,
            }
        }
    }

    async fn run_job(&self, remote: &Remote, job: CopyJob) -> Result<(), CopyError> {
        let (name, outcome) = match job {
            CopyJob::Get {
                from,
                attrs,
                to,
                depth,
            } => {
                let outcome = self.copy_from_host(remote, &from, attrs, &to, depth).await;
                (display_path(&from), outcome)
            }
            CopyJob::Put { from, to, depth } => {
                let outcome = self.copy_to_host(remote, &from, &to, depth).await;
                (display_path(path_bytes(&from)), outcome)
            }
        };
        outcome.or_else(|fault| self.how.report_and_skip(&name, fault))
    }

    fn add_jobs(&self, jobs: impl IntoIterator<Item = CopyJob>) {
        self.jobs.borrow_mut().extend(jobs);
        self.more.notify_waiters();
    }

    /// Fails unless a folder of this depth may be copied.
    fn check_folder(&self, depth: usize) -> Result<(), CopyError> {
        match (self.how.recursive, depth < MAX_DEPTH) {
            (true, true) => Ok(()),
            (true, false) => Err(CopyError::other("folders are nested too deeply")),
            (false, _) => Err(CopyError::other("is a folder (-r copies folders)")),
        }
    }

    async fn copy_from_host(
        &self,
        remote: &Remote,
        from: &[u8],
        attrs: Option<FileAttrs>,
        to: &Path,
        depth: usize,
    ) -> Result<(), CopyError> {
        let attrs = match attrs {
            Some(attrs) => attrs,
            None => remote.stat(from).await?,
        };
        match attrs.file_kind() {
            Some(FileType::Folder) => {}
            Some(FileType::Regular) | None => return get(remote, from, attrs, to, self.how).await,
            Some(_) => return Err(CopyError::other("is not a regular file")),
        }
        self.check_folder(depth)?;
        let entries = remote.read_dir(from).await?;
        let mode = attrs.permissions.unwrap_or(0o777) & 0o777 | 0o700;
        match fs::DirBuilder::new().mode(mode).create(to) {
            Err(_) if to.is_dir() => {}
            made => made?,
        }
        if self.how.preserve {
            self.here.borrow_mut().push((to.to_owned(), attrs));
        }
        self.add_jobs(entries.into_iter().map(|entry| {
            let link = matches!(entry.attrs.file_kind(), Some(FileType::Symlink) | None);
            CopyJob::Get {
                from: join_path(from, &entry.name),
                attrs: (!link).then_some(entry.attrs),
                to: to.join(path_from_bytes(&entry.name)),
                depth: depth + 1,
            }
        }));
        Ok(())
    }

    async fn copy_to_host(
        &self,
        remote: &Remote,
        from: &Path,
        to: &[u8],
        depth: usize,
    ) -> Result<(), CopyError> {
        let found = fs::metadata(from)?;
        if found.is_file() {
            return put(remote, from, to, self.how).await;
        }
        if !found.is_dir() {
            return Err(CopyError::other("is not a regular file"));
        }
        self.check_folder(depth)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(from)? {
            names.push(entry?.file_name());
        }
        let attrs = attrs_from_metadata(&found);
        make_folder(remote, to, attrs.permissions.unwrap_or(0o777)).await?;
        if self.how.preserve {
            self.there.borrow_mut().push((to.to_vec(), attrs));
        }
        self.add_jobs(names.into_iter().map(|name| CopyJob::Put {
            to: join_path(to, path_bytes(Path::new(&name))),
            from: from.join(name),
            depth: depth + 1,
        }));
        Ok(())
    }

    /// Sets the attributes of all copied folders, innermost first.
    async fn apply_folder_attributes(&self, remote: &Remote) -> Result<(), CopyError> {
        let here = self.here.take();
        for (path, attrs) in here.iter().rev() {
            let outcome = fs::File::open(path)
                .and_then(|folder| apply_attrs(&folder, attrs))
                .map_err(CopyError::from);
            outcome
                .or_else(|fault| self.how.report_and_skip(&path.display().to_string(), fault))?;
        }
        let there = self.there.take();
        for (path, attrs) in there.iter().rev() {
            let attrs = FileAttrs {
                permissions: attrs.permissions.map(|mode| mode & 0o7777),
                times: attrs.times,
                ..FileAttrs::default()
            };
            let outcome = remote.set_stat(path, attrs).await;
            outcome.or_else(|fault| self.how.report_and_skip(&display_path(path), fault))?;
        }
        Ok(())
    }
}

/// Downloads a file whose attributes are `attrs`.
async fn get(
    remote: &Remote,
    from: &[u8],
    attrs: FileAttrs,
    to: &Path,
    how: &CopyOptions,
) -> Result<(), CopyError> {
    let options = how.transfer_options().with_attrs(attrs);
    let mut get = remote.start_get(from, to, &options).await?;
    let whole = get.is_complete();
    let mut line = how
        .meter
        .start_file(display_path(from), get.size(), get.start());
    while let Some(n) = get.advance().await? {
        line.add_bytes(n).await;
    }
    if !whole {
        line.finish();
    }
    Ok(())
}

/// Uploads a file.
async fn put(remote: &Remote, from: &Path, to: &[u8], how: &CopyOptions) -> Result<(), CopyError> {
    let mut put = remote.start_put(from, to, &how.transfer_options()).await?;
    let name = display_path(path_bytes(from));
    let mut line = how.meter.start_file(name, put.size(), put.start());
    while let Some(n) = put.advance().await? {
        line.add_bytes(n).await;
    }
    line.finish();
    Ok(())
}
