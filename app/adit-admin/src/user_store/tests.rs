//! Tests of the store.

use std::fs;

use adit_engine::{ByteCounts, Usage, UserLimits};
use adit_wire::{QuotaPeriod, UnixTime};
use tokio::time::timeout;

use super::*;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        // In memory, where there is such a folder: the tests write thousands of files.
        let memory = Path::new("/dev/shm");
        let parent = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        let path = parent.join(format!("adit-store-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> PathBuf {
        self.0.join("users.redb")
    }

    /// Returns the damaged stores that were kept.
    fn kept(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.0).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        paths
            .filter(|path| path.display().to_string().contains(".damaged-"))
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn user(name: &str, up: u64) -> StoredUser {
    StoredUser {
        name: name.to_owned(),
        limits: UserLimits {
            quota: Some(1 << 40),
            period: QuotaPeriod::Month,
            expires: Some(UnixTime(1 << 33)),
            rate: Some(125_000),
            sessions: Some(7),
            devices: None,
        },
        period_start: UnixTime(1_700_000_000),
        before_period: ByteCounts { up: 3, down: 4 },
        total: Usage {
            up,
            down: 2,
            packets_up: 3,
            packets_down: 4,
            tcp_sessions: 5,
            udp_sessions: 6,
        },
    }
}

#[test]
fn users_are_read_as_they_were_written() {
    let folder = Folder::new("written");
    let path = folder.store();
    let first = [user("ann", 1), user("bob \"\u{fc}\"", 2), user("cid", 3)];
    let store = UserStore::open(&path).unwrap();
    assert!(store.users().is_empty());
    store.write(first.clone()).unwrap();
    drop(store);
    let store = UserStore::open(&path).unwrap();
    assert_eq!(store.users(), first);
    let second = [user("aaa", 4), user("ann", 1), user("cid", 30)];
    store.write(second.clone()).unwrap();
    drop(store);
    assert_eq!(UserStore::open(&path).unwrap().users(), second);
    UserStore::open(&path).unwrap().write([]).unwrap();
    assert!(UserStore::open(&path).unwrap().users().is_empty());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "others can read it");
    }
}

#[test]
fn one_process_has_the_store() {
    let folder = Folder::new("one");
    let path = folder.store();
    let store = UserStore::open(&path).unwrap();
    let second = UserStore::open(&path);
    assert!(matches!(second, Err(UserStoreError::InUse)), "{second:?}");
    drop(store);
    assert!(UserStore::open(&path).is_ok());
    assert!(folder.kept().is_empty());
}

#[test]
fn other_files_are_refused_and_stay() {
    let folder = Folder::new("other");
    let path = folder.store();
    fs::write(&path, "[route]\n").unwrap();
    let opened = UserStore::open(&path);
    assert!(
        matches!(opened, Err(UserStoreError::OtherFile)),
        "{opened:?}"
    );
    assert_eq!(fs::read(&path).unwrap(), b"[route]\n");
    let opened = UserStore::open(&folder.0.join("none/users.redb"));
    assert!(matches!(opened, Err(UserStoreError::Io(_))), "{opened:?}");
    let opened = UserStore::open(&folder.0);
    assert!(matches!(opened, Err(UserStoreError::Io(_))), "{opened:?}");
}

/// A store that was cut anywhere opens with its users, or is kept aside and replaced.
///
/// A cut leaves a prefix of the file. Where the library extends it again, it reads zeros behind the prefix: two cuts with
/// nothing but zeros between them have the same content. They differ in their length alone, of which whole pages count,
/// and whether the last of them is complete. So every cut behind a byte that is not zero is tried, and those around every
/// end of a page; the others are copies of these.
#[test]
fn a_store_that_was_cut_is_repaired_or_kept() {
    const PAGE: usize = 4096;
    let folder = Folder::new("cut");
    let path = folder.store();
    let users: Vec<StoredUser> = (0..3).map(|n| user(&format!("user {n}"), n)).collect();
    let store = UserStore::open(&path).unwrap();
    store.write(users.clone()).unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    let is_tried = |len: usize| {
        let is_content = len > 0 && whole[len - 1] != 0;
        is_content || matches!(len % PAGE, 0 | 1) || len % PAGE == PAGE - 1
    };
    let cuts: Vec<usize> = (0..whole.len()).filter(|len| is_tried(*len)).collect();
    let mut kept = 0;
    for &len in &cuts {
        fs::write(&path, &whole[..len]).unwrap();
        let store = UserStore::open(&path).unwrap_or_else(|why| panic!("cut at {len}: {why}"));
        let aside = folder.kept();
        assert!(aside.len() <= 1);
        match aside.first() {
            Some(aside) => {
                assert!(store.users().is_empty());
                assert_eq!(fs::read(aside).unwrap().len(), len);
                fs::remove_file(aside).unwrap();
                kept += 1;
            }
            None if len == 0 => assert!(store.users().is_empty(), "a new file"),
            None => assert_eq!(store.users(), users, "cut at {len}"),
        }
        // It works as any other.
        if len % 64 == 0 {
            store.write(users.clone()).unwrap();
            drop(store);
            assert_eq!(UserStore::open(&path).unwrap().users(), users);
        }
    }
    eprintln!(
        "{} cuts of {} bytes, {kept} kept aside",
        cuts.len(),
        whole.len()
    );
    assert!(kept > 0);
}

/// Bytes that were changed lead to no panic of the process, and to no other error than damage.
#[test]
fn a_store_with_other_bytes_is_repaired_or_kept() {
    let folder = Folder::new("bytes");
    let path = folder.store();
    let users: Vec<StoredUser> = (0..40).map(|n| user(&format!("user {n:02}"), n)).collect();
    let store = UserStore::open(&path).unwrap();
    store.write(users.clone()).unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    for at in (9..512).chain((512..whole.len()).step_by(1021)) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x5a;
        fs::write(&path, &bytes).unwrap();
        match UserStore::open(&path) {
            Ok(store) => drop(store.write(users.clone())),
            Err(UserStoreError::NewerFormat(_)) => {}
            Err(why) => panic!("byte {at}: {why}"),
        }
        for aside in folder.kept() {
            fs::remove_file(aside).unwrap();
        }
    }
}

#[tokio::test]
async fn a_store_follows_its_registry() {
    let folder = Folder::new("follow");
    let path = folder.store();
    let store = UserStore::open(&path).unwrap();
    let registry = Arc::new(UserRegistry::default());
    let control = store.follow(registry.clone(), Duration::from_secs(3600));
    let limits = UserLimits {
        quota: Some(5),
        ..UserLimits::default()
    };
    registry.set_limits("ann", limits);
    // Written at the end, at the latest.
    timeout(Duration::from_secs(30), control.close())
        .await
        .unwrap();
    let next = UserStore::open(&path).unwrap();
    assert_eq!(next.users().len(), 1);
    assert_eq!(next.users()[0].limits, limits);
    drop(next);
    control.reopen().await;
    assert!(registry.remove("ann"));
    timeout(Duration::from_secs(30), control.close())
        .await
        .unwrap();
    assert!(UserStore::open(&path).unwrap().users().is_empty());
}
