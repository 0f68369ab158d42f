//! A store in a file, for processes on one machine: each locks the file for a call, reads what others have appended,
//! and appends its own changes. Salts, sessions and devices are not kept, and not shared among processes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_net::system::unix_now;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::local::StateHolder;
use super::state::{Mutation, Outcome, RealmState};
use super::{StoreError, StoreErrorKind, StoreHealth};
use crate::frame_file::{FrameFile, OpenedFrames};

const MAGIC: [u8; 8] = *b"aditflr1";
/// Maximum time to wait for other processes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which the file is looked at for changes of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A store in a file. Clones share it.
#[derive(Debug, Clone)]
pub struct EmbeddedStore(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    realm: String,
    open: Mutex<Open>,
    changed: Notify,
}

#[derive(Debug)]
struct Open {
    file: FrameFile,
    state: RealmState,
    /// True if the state contains what the file does not.
    is_ahead: bool,
    last_error: Option<String>,
}

/// A frame of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Frame {
    Whole(Box<RealmState>),
    /// The time in milliseconds since 1970.
    Change(u64, Box<Mutation>),
}

impl EmbeddedStore {
    /// Opens the file of a realm, or creates it. This function blocks.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::File`] if it cannot be used.
    pub fn open(path: &Path, realm: &str) -> Result<Self, StoreError> {
        let (file, state) = read_file(path)?;
        file.unlock();
        Ok(Self(Arc::new(Shared {
            path: path.to_owned(),
            realm: realm.to_owned(),
            open: Mutex::new(Open {
                file,
                state,
                is_ahead: false,
                last_error: None,
            }),
            changed: Notify::new(),
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        // After a panic during a change the file is read anew.
        self.0.open.lock().unwrap_or_else(|poisoned| {
            let mut open = PoisonError::into_inner(poisoned);
            open.is_ahead = true;
            open
        })
    }

    /// Performs `work` on the current state, while no other process can change it.
    fn run<T>(
        &self,
        work: impl FnOnce(&mut Open) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut open = self.lock();
        let current = self
            .catch_up(&mut open)
            .map_err(|why| file_error(&self.0.path, &why));
        let done = current.and_then(|()| work(&mut open));
        open.file.unlock();
        let failed = done.as_ref().err();
        open.last_error = failed
            .filter(|why| why.kind == StoreErrorKind::File)
            .map(ToString::to_string);
        done
    }

    fn catch_up(&self, open: &mut Open) -> io::Result<()> {
        let frames = match open.is_ahead {
            true => None,
            false => open.file.lock_again(LOCK_TIMEOUT)?,
        };
        match frames {
            Some(frames) => replay(&mut open.state, &frames)?,
            None => {
                open.file.unlock();
                let OpenedFrames { file, frames } =
                    FrameFile::open(&self.0.path, MAGIC, LOCK_TIMEOUT)?;
                let mut state = RealmState::default();
                replay(&mut state, &frames)?;
                open.state = state.with_volatile_of(std::mem::take(&mut open.state));
                open.file = file;
                open.is_ahead = false;
            }
        }
        Ok(())
    }

    fn append(&self, open: &mut Open, now: u64, mutation: Mutation) -> io::Result<()> {
        open.is_ahead = true;
        open.file.append(&serde_json::to_vec(&Frame::Change(
            now,
            Box::new(mutation),
        ))?)?;
        if open.file.is_long() {
            let whole = Frame::Whole(Box::new(open.state.clone()));
            open.file.replace(&serde_json::to_vec(&whole)?)?;
        }
        open.is_ahead = false;
        Ok(())
    }
}

fn read_file(path: &Path) -> Result<(FrameFile, RealmState), StoreError> {
    let read = || {
        let OpenedFrames { file, frames } = FrameFile::open(path, MAGIC, LOCK_TIMEOUT)?;
        let mut state = RealmState::default();
        replay(&mut state, &frames)?;
        Ok((file, state))
    };
    read().map_err(|why| file_error(path, &why))
}

fn replay(state: &mut RealmState, frames: &[Vec<u8>]) -> io::Result<()> {
    for frame in frames {
        match serde_json::from_slice(frame)? {
            Frame::Whole(whole) => {
                *state = *whole;
                state.index_names();
            }
            // It was possible when it was written.
            Frame::Change(now, mutation) => drop(state.apply(now, &mutation)),
        }
    }
    Ok(())
}

fn file_error(path: &Path, why: &io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::File, format!("{}: {why}", path.display()))
}

impl StateHolder for EmbeddedStore {
    fn now(&self) -> u64 {
        unix_now().0.saturating_mul(1000)
    }

    fn realm(&self) -> Option<&str> {
        Some(&self.0.realm)
    }

    fn with_state<T>(&self, read: impl FnOnce(&mut RealmState) -> T) -> Result<T, StoreError> {
        self.run(|open| Ok(read(&mut open.state)))
    }

    fn mutate(&self, mutation: Mutation) -> Result<Outcome, StoreError> {
        let now = StateHolder::now(self);
        let outcome = self.run(|open| {
            let outcome = open.state.apply(now, &mutation)?;
            self.append(open, now, mutation)
                .map_err(|why| file_error(&self.0.path, &why))?;
            Ok(outcome)
        });
        self.0.changed.notify_waiters();
        outcome
    }

    fn changed(&self) -> impl Future<Output = ()> + Send {
        let notified = self.0.changed.notified();
        async move {
            tokio::pin!(notified);
            // The file is looked at in between: other processes do not notify.
            while timeout(POLL_INTERVAL, notified.as_mut()).await.is_err() {
                if self.lock().file.has_changed() {
                    return;
                }
            }
        }
    }

    fn health(&self) -> StoreHealth {
        let last_error = self.lock().last_error.clone();
        StoreHealth {
            is_up: last_error.is_none(),
            failures: u64::from(last_error.is_some()),
            retry_in: None,
            last_error,
        }
    }
}
