//! The file of the store: opening, repairing, reading and writing. All of it blocks.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use adit_engine::StoredUser;
use adit_net::system;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use crate::user_record::UserRecord;

/// The users, as JSON by name.
const USERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("users");
/// The format, and the generation.
const PROCESS: TableDefinition<'_, &str, u64> = TableDefinition::new("process");
/// The key of the format.
const FORMAT: &str = "format";
/// The format that this adit writes.
const FORMAT_NUMBER: u64 = 1;
/// The key of the number of processes that have opened the store.
const GENERATION: &str = "generation";
/// The first bytes of a file of redb.
const MAGIC: [u8; 9] = [b'r', b'e', b'd', b'b', 0x1A, 0x0A, 0xA9, 0x0D, 0x0A];
/// Memory for pages of the file, in bytes.
const CACHE: usize = 256 << 10;

/// The error of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserStoreError {
    /// The file cannot be opened or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("this file is not a store of users")]
    OtherFile,
    /// Another process has the store open.
    #[error("another process uses this store")]
    InUse,
    /// A newer adit has written the store.
    #[error("a newer adit has written this store, in format {0}")]
    NewerFormat(u64),
    /// Another process has opened the store since.
    #[error("another process has taken over this store")]
    TakenOver,
    /// The content of the file is damaged.
    #[error("this store is damaged: {0}")]
    Damaged(String),
}

/// The open file of a store.
pub(super) struct UserDatabase {
    database: Database,
    /// The number of this process among those that have opened the store.
    generation: u64,
}

/// A store that was opened, and its content.
pub(super) struct OpenedDatabase {
    pub(super) database: UserDatabase,
    pub(super) users: Vec<StoredUser>,
    /// The name of the damaged file that was replaced, and its fault.
    pub(super) replaced: Option<(PathBuf, String)>,
}

impl UserDatabase {
    /// Opens the store, or creates it. A damaged one is kept under another name, and replaced.
    pub(super) fn open(path: &Path) -> Result<OpenedDatabase, UserStoreError> {
        check_magic(path)?;
        match Self::try_open(path) {
            Ok((database, users)) => Ok(OpenedDatabase {
                database,
                users,
                replaced: None,
            }),
            Err(UserStoreError::Damaged(why)) => {
                let aside = keep_aside(path)?;
                let (database, users) = Self::try_open(path)?;
                Ok(OpenedDatabase {
                    database,
                    users,
                    replaced: Some((aside, why)),
                })
            }
            Err(why) => Err(why),
        }
    }

    fn try_open(path: &Path) -> Result<(Self, Vec<StoredUser>), UserStoreError> {
        let file = open_private(path)?;
        contain_panics(|| {
            let database = Database::builder().set_cache_size(CACHE).create_file(file);
            let database = database.map_err(from_open_error)?;
            let users = read_users(&database)?;
            let generation = start_generation(&database)?;
            let open = Self {
                database,
                generation,
            };
            Ok((open, users))
        })
    }

    /// Makes the store contain `users`, which are in the order of their names, and no others. Either all of it is
    /// written, or nothing.
    pub(super) fn write(
        &self,
        users: impl IntoIterator<Item = StoredUser>,
    ) -> Result<(), UserStoreError> {
        contain_panics(|| {
            let transaction = self.database.begin_write().map_err(to_error)?;
            {
                let process = transaction.open_table(PROCESS).map_err(to_error)?;
                let last = process.get(GENERATION).map_err(to_error)?;
                if last.is_none_or(|last| last.value() != self.generation) {
                    return Err(UserStoreError::TakenOver);
                }
                let mut table = transaction.open_table(USERS).map_err(to_error)?;
                write_changes(&mut table, users)?;
            }
            transaction.commit().map_err(to_error)
        })
    }
}

/// Writes those that differ from the table, and removes those that are not in `users`.
fn write_changes(
    table: &mut redb::Table<'_, &'static str, &'static [u8]>,
    users: impl IntoIterator<Item = StoredUser>,
) -> Result<(), UserStoreError> {
    let (mut changed, mut removed) = (Vec::new(), Vec::new());
    {
        let mut known = table.iter().map_err(to_error)?.peekable();
        for user in users {
            let text = to_json(&user)?;
            let mut is_same = false;
            // Both sides are sorted.
            while let Some(entry) = known.peek() {
                let Ok((name, value)) = entry else { break };
                match name.value().cmp(user.name.as_str()) {
                    std::cmp::Ordering::Less => removed.push(name.value().to_owned()),
                    std::cmp::Ordering::Equal => is_same = value.value() == text,
                    std::cmp::Ordering::Greater => break,
                }
                known.next();
            }
            if !is_same {
                changed.push((user.name, text));
            }
        }
        for entry in known {
            let (name, _) = entry.map_err(to_error)?;
            removed.push(name.value().to_owned());
        }
    }
    for name in removed {
        table.remove(name.as_str()).map_err(to_error)?;
    }
    for (name, text) in changed {
        let inserted = table.insert(name.as_str(), text.as_slice());
        inserted.map_err(to_error)?;
    }
    Ok(())
}

/// Returns an error if the file is not a store, or if it does not exist and neither does its folder.
pub(super) fn check_place(path: &Path) -> Result<(), UserStoreError> {
    check_magic(path)?;
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    match folder {
        Some(folder) => Ok(std::fs::metadata(folder).map(drop)?),
        None => Ok(()),
    }
}

/// Returns an error if the file is not a store, so that it is not replaced like a damaged one.
fn check_magic(path: &Path) -> Result<(), UserStoreError> {
    let mut start = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(MAGIC.len() as u64).read_to_end(&mut start)?,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(why.into()),
    };
    match MAGIC.starts_with(&start) {
        true => Ok(()),
        false => Err(UserStoreError::OtherFile),
    }
}

/// Opens the file, or creates one that only the user can read.
fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Renames a damaged store, and returns its new name.
fn keep_aside(path: &Path) -> io::Result<PathBuf> {
    let now = system::unix_now().0;
    let mut number = 0;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(match number {
            0 => format!(".damaged-{now}"),
            _ => format!(".damaged-{now}-{number}"),
        });
        let aside = PathBuf::from(name);
        if !aside.try_exists()? {
            std::fs::rename(path, &aside)?;
            return Ok(aside);
        }
        number += 1;
    }
}

/// Reads all users.
fn read_users(database: &Database) -> Result<Vec<StoredUser>, UserStoreError> {
    let transaction = database.begin_read().map_err(to_error)?;
    let format = match transaction.open_table(PROCESS) {
        Ok(process) => process.get(FORMAT).map_err(to_error)?.map(|n| n.value()),
        // A new file.
        Err(redb::TableError::TableDoesNotExist(_)) => None,
        Err(why) => return Err(to_error(why)),
    };
    if let Some(format) = format.filter(|format| *format != FORMAT_NUMBER) {
        return Err(UserStoreError::NewerFormat(format));
    }
    let table = match transaction.open_table(USERS) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        Err(why) => return Err(to_error(why)),
    };
    let mut users = Vec::new();
    for entry in table.iter().map_err(to_error)? {
        let (name, value) = entry.map_err(to_error)?;
        users.push(from_json(name.value(), value.value())?);
    }
    Ok(users)
}

/// Records that a further process has opened the store, and returns its number.
fn start_generation(database: &Database) -> Result<u64, UserStoreError> {
    let transaction = database.begin_write().map_err(to_error)?;
    let generation = {
        let mut process = transaction.open_table(PROCESS).map_err(to_error)?;
        process.insert(FORMAT, FORMAT_NUMBER).map_err(to_error)?;
        let last = process.get(GENERATION).map_err(to_error)?;
        let next = last.map_or(0, |last| last.value()).wrapping_add(1);
        process.insert(GENERATION, next).map_err(to_error)?;
        transaction.open_table(USERS).map_err(to_error)?;
        next
    };
    transaction.commit().map_err(to_error)?;
    Ok(generation)
}

/// Runs `work`. A damaged file can make the library panic.
fn contain_panics<T>(
    work: impl FnOnce() -> Result<T, UserStoreError>,
) -> Result<T, UserStoreError> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.unwrap_or_else(|_| {
        let why = "its pages contradict each other";
        Err(UserStoreError::Damaged(why.to_owned()))
    })
}

fn from_open_error(why: DatabaseError) -> UserStoreError {
    match why {
        DatabaseError::DatabaseAlreadyOpen => UserStoreError::InUse,
        DatabaseError::UpgradeRequired(format) => UserStoreError::NewerFormat(format.into()),
        why => to_error(why),
    }
}

fn to_error(why: impl Into<redb::Error>) -> UserStoreError {
    match why.into() {
        // What a file that is too short leads to.
        redb::Error::Io(why)
            if matches!(
                why.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::InvalidData
                    | io::ErrorKind::InvalidInput
            ) =>
        {
            UserStoreError::Damaged(why.to_string())
        }
        redb::Error::Io(why) => UserStoreError::Io(why),
        why => UserStoreError::Damaged(why.to_string()),
    }
}

fn to_json(user: &StoredUser) -> Result<Vec<u8>, UserStoreError> {
    serde_json::to_vec(&UserRecord::from(user)).map_err(|why| UserStoreError::Io(why.into()))
}

fn from_json(name: &str, text: &[u8]) -> Result<StoredUser, UserStoreError> {
    let damaged =
        |why: &dyn std::fmt::Display| UserStoreError::Damaged(format!("user {name:?}: {why}"));
    let record: UserRecord = serde_json::from_slice(text).map_err(|why| damaged(&why))?;
    record
        .into_user(name.to_owned())
        .map_err(|why| damaged(&why))
}
