//! Many files: a queue of them, and workers that take from it.
//!
//! Folders are in the queue as well: whoever takes one makes its copy and puts what is in it into
//! the queue. The newest is taken first, so that the queue stays short. Times and permissions of
//! folders are set at the end, since every new file would change them.

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

use super::local::{native, octets};
use super::names::{join, shown};
use super::there::make_folder;
use super::{Fault, How, Remote};

/// Channels that carry a tree at once.
const WORKERS: usize = 4;
/// Folders in folders at most: links may lead in circles.
pub(super) const DEEPEST: usize = 64;

/// One thing to be copied.
#[derive(Debug)]
pub(crate) enum Job {
    /// From the other machine.
    Get {
        /// There.
        from: Vec<u8>,
        /// Its attributes, if they are known: not of a symbolic link.
        attrs: Option<FileAttrs>,
        /// Here.
        to: PathBuf,
        /// In how many folders of the tree it is.
        depth: usize,
    },
    /// To the other machine.
    Put {
        /// Here.
        from: PathBuf,
        /// There.
        to: Vec<u8>,
        /// In how many folders of the tree it is.
        depth: usize,
    },
}

/// Work on a channel of its own.
type Worker<'a> = Pin<Box<dyn Future<Output = Result<(), Fault>> + 'a>>;

struct Queue<'a> {
    jobs: RefCell<Vec<Job>>,
    busy: Cell<usize>,
    more: Notify,
    how: &'a How,
    /// Folders whose attributes are to be set, here and there.
    here: RefCell<Vec<(PathBuf, FileAttrs)>>,
    there: RefCell<Vec<(Vec<u8>, FileAttrs)>>,
}

/// Copies all of them; what goes wrong with one is told, and the others go on.
///
/// # Errors
/// The session failed.
pub(crate) async fn carry(
    remote: &Remote,
    session: &Session,
    mut jobs: Vec<Job>,
    how: &How,
) -> Result<(), Fault> {
    let alone = jobs.len() == 1 && !how.recursive;
    jobs.reverse();
    let queue = Queue {
        jobs: RefCell::new(jobs),
        busy: Cell::new(0),
        more: Notify::new(),
        how,
        here: RefCell::default(),
        there: RefCell::default(),
    };
    if alone {
        return queue.work(remote).await;
    }
    let mut workers: Vec<Worker<'_>> = Vec::new();
    for _ in 1..WORKERS {
        workers.push(Box::pin(async {
            // A server may allow fewer channels.
            match Remote::open(session).await {
                Ok(remote) => queue.work(&remote).await,
                Err(_) => Ok(()),
            }
        }));
    }
    workers.push(Box::pin(queue.work(remote)));
    all(workers).await?;
    queue.set_folders(remote).await
}

/// Awaits all of them, or the first that fails.
async fn all(mut workers: Vec<Worker<'_>>) -> Result<(), Fault> {
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

impl Queue<'_> {
    /// Takes jobs until there are none, and nobody is busy who could bring more.
    async fn work(&self, remote: &Remote) -> Result<(), Fault> {
        loop {
            let more = self.more.notified();
            let job = self.jobs.borrow_mut().pop();
            match job {
                Some(job) => {
                    self.busy.set(self.busy.get() + 1);
                    let outcome = self.one(remote, job).await;
                    self.busy.set(self.busy.get() - 1);
                    self.more.notify_waiters();
                    outcome?;
                }
                None if self.busy.get() == 0 => return Ok(()),
                None => more.await,
            }
        }
    }

    async fn one(&self, remote: &Remote, job: Job) -> Result<(), Fault> {
        let (name, outcome) = match job {
            Job::Get {
                from,
                attrs,
                to,
                depth,
            } => {
                let outcome = self.get(remote, &from, attrs, &to, depth).await;
                (shown(&from), outcome)
            }
            Job::Put { from, to, depth } => {
                let outcome = self.put(remote, &from, &to, depth).await;
                (shown(octets(&from)), outcome)
            }
        };
        outcome.or_else(|fault| self.how.skip(&name, fault))
    }

    fn add(&self, jobs: impl IntoIterator<Item = Job>) {
        self.jobs.borrow_mut().extend(jobs);
        self.more.notify_waiters();
    }

    /// Whether a folder may be copied.
    fn may_enter(&self, depth: usize) -> Result<(), Fault> {
        match (self.how.recursive, depth < DEEPEST) {
            (true, true) => Ok(()),
            (true, false) => Err(Fault::unfit("too many folders in folders")),
            (false, _) => Err(Fault::unfit("is a folder (-r copies folders)")),
        }
    }

    async fn get(
        &self,
        remote: &Remote,
        from: &[u8],
        attrs: Option<FileAttrs>,
        to: &Path,
        depth: usize,
    ) -> Result<(), Fault> {
        let attrs = match attrs {
            Some(attrs) => attrs,
            None => remote.stat(from).await?,
        };
        match attrs.file_kind() {
            Some(FileType::Folder) => {}
            Some(FileType::Regular) | None => return get(remote, from, attrs, to, self.how).await,
            Some(_) => return Err(Fault::unfit("is no regular file")),
        }
        self.may_enter(depth)?;
        let entries = remote.read_dir(from).await?;
        let mode = attrs.permissions.unwrap_or(0o777) & 0o777 | 0o700;
        match fs::DirBuilder::new().mode(mode).create(to) {
            Err(_) if to.is_dir() => {}
            made => made?,
        }
        if self.how.preserve {
            self.here.borrow_mut().push((to.to_owned(), attrs));
        }
        self.add(entries.into_iter().map(|entry| {
            let link = matches!(entry.attrs.file_kind(), Some(FileType::Symlink) | None);
            Job::Get {
                from: join(from, &entry.name),
                attrs: (!link).then_some(entry.attrs),
                to: to.join(native(&entry.name)),
                depth: depth + 1,
            }
        }));
        Ok(())
    }

    async fn put(
        &self,
        remote: &Remote,
        from: &Path,
        to: &[u8],
        depth: usize,
    ) -> Result<(), Fault> {
        let found = fs::metadata(from)?;
        if found.is_file() {
            return put(remote, from, to, self.how).await;
        }
        if !found.is_dir() {
            return Err(Fault::unfit("is no regular file"));
        }
        self.may_enter(depth)?;
        let mut names = Vec::new();
        for entry in fs::read_dir(from)? {
            names.push(entry?.file_name());
        }
        let attrs = attrs_from_metadata(&found);
        make_folder(remote, to, attrs.permissions.unwrap_or(0o777)).await?;
        if self.how.preserve {
            self.there.borrow_mut().push((to.to_vec(), attrs));
        }
        self.add(names.into_iter().map(|name| Job::Put {
            to: join(to, octets(Path::new(&name))),
            from: from.join(name),
            depth: depth + 1,
        }));
        Ok(())
    }

    /// Gives folders the attributes of their originals, those within others first.
    async fn set_folders(&self, remote: &Remote) -> Result<(), Fault> {
        let here = self.here.take();
        for (path, attrs) in here.iter().rev() {
            let outcome = fs::File::open(path)
                .and_then(|folder| apply_attrs(&folder, attrs))
                .map_err(Fault::from);
            outcome.or_else(|fault| self.how.skip(&path.display().to_string(), fault))?;
        }
        let there = self.there.take();
        for (path, attrs) in there.iter().rev() {
            let attrs = FileAttrs {
                permissions: attrs.permissions.map(|mode| mode & 0o7777),
                times: attrs.times,
                ..FileAttrs::default()
            };
            let outcome = remote.set_stat(path, attrs).await;
            outcome.or_else(|fault| self.how.skip(&shown(path), fault))?;
        }
        Ok(())
    }
}

/// Copies a file of these attributes from the other machine.
async fn get(
    remote: &Remote,
    from: &[u8],
    attrs: FileAttrs,
    to: &Path,
    how: &How,
) -> Result<(), Fault> {
    let options = how.options().with_attrs(attrs);
    let mut get = remote.start_get(from, to, &options).await?;
    let whole = get.is_complete();
    let mut line = how.meter.begin(shown(from), get.size(), get.start());
    while let Some(n) = get.advance().await? {
        line.add(n).await;
    }
    if !whole {
        line.done();
    }
    Ok(())
}

/// Copies a file to the other machine.
async fn put(remote: &Remote, from: &Path, to: &[u8], how: &How) -> Result<(), Fault> {
    let mut put = remote.start_put(from, to, &how.options()).await?;
    let name = shown(octets(from));
    let mut line = how.meter.begin(name, put.size(), put.start());
    while let Some(n) = put.advance().await? {
        line.add(n).await;
    }
    line.done();
    Ok(())
}
