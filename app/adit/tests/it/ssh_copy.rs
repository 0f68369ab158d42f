//! `adit scp` and `adit sftp` against OpenSSH's server and ours.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use adit_interop::openssh::{self, Sshd, keygen};
use adit_interop::tool::Ended;
use adit_interop::{Adit, Folder, free_port};

use crate::setup::bin;

const LIMIT: Duration = Duration::from_secs(120);

/// Whose server it is, with what keeps it running.
enum Server {
    OpenSsh(Sshd),
    Ours(Adit),
}

/// A server, and a folder with what is here and what is there.
struct Desk {
    server: Server,
    folder: Folder,
}

/// Does it with OpenSSH's server, then with ours.
fn with_both(work: impl Fn(&Desk)) {
    work(&Desk::new(|_| Server::OpenSsh(Sshd::start("").unwrap())));
    work(&Desk::new(|folder| {
        let id = keygen(folder, "id").unwrap();
        let [host, keys] = [folder.join("host"), id.with_extension("pub")];
        let [host, keys] = [host.to_str().unwrap(), keys.to_str().unwrap()];
        let mut args = vec!["sshd", "--listen", "127.0.0.1:0"];
        args.extend(["--host-key", host, "--authorized-keys", keys]);
        Server::Ours(Adit::start(&args, 1).unwrap())
    }));
}

impl Desk {
    fn new(server: impl FnOnce(&Path) -> Server) -> Self {
        let folder = Folder::new("copy").unwrap();
        for name in ["here", "there"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let server = server(folder.path());
        Self { server, folder }
    }

    fn port(&self) -> u16 {
        match &self.server {
            Server::OpenSsh(sshd) => sshd.port(),
            Server::Ours(adit) => adit.addr().port(),
        }
    }

    fn key(&self) -> PathBuf {
        match &self.server {
            Server::OpenSsh(sshd) => sshd.folder().join("id"),
            Server::Ours(_) => self.folder.path().join("id"),
        }
    }

    fn here(&self, name: &str) -> PathBuf {
        self.folder.path().join("here").join(name)
    }

    fn there(&self, name: &str) -> PathBuf {
        self.folder.path().join("there").join(name)
    }

    /// A path there as a word for scp.
    fn word(&self, name: &str) -> String {
        format!("127.0.0.1:{}", self.there(name).display())
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(bin());
        command.args([name, "-P", &self.port().to_string(), "-F", "none"]);
        command.arg("-i").arg(self.key());
        for option in [
            "IdentitiesOnly=yes",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "GlobalKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "BatchMode=yes",
        ] {
            command.args(["-o", option]);
        }
        command.current_dir(self.folder.path().join("here"));
        command.stdin(Stdio::null());
        command
    }

    fn scp(&self, args: &[&str]) -> Ended {
        let mut command = self.command("scp");
        command.args(args);
        openssh::run(command, LIMIT).unwrap()
    }

    /// Runs a batch that begins in the folder there.
    fn sftp(&self, args: &[&str], commands: &str) -> Ended {
        let batch = self.folder.write("batch", commands).unwrap();
        let mut command = self.command("sftp");
        command.args(args).arg("-b").arg(batch).arg(self.word(""));
        openssh::run(command, LIMIT).unwrap()
    }
}

/// Bytes that look like nothing.
fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        out.extend_from_slice(&(seed ^ (seed >> 29)).to_le_bytes());
    }
    out.truncate(len);
    out
}

fn same(one: &Path, other: &Path) {
    let (one, other) = (fs::read(one).unwrap(), fs::read(other).unwrap());
    assert!(one == other, "{} and {} bytes", one.len(), other.len());
}

/// What is in a folder: by path, mode and content (none of folders), and the time if it counts.
fn tree(root: &Path, times: bool) -> BTreeMap<OsString, (u32, i64, Option<Vec<u8>>)> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().as_os_str().to_owned();
            let content = about.is_file().then(|| fs::read(&path).unwrap());
            let time = if times { about.mtime() } else { 0 };
            found.insert(name, (about.mode() & 0o777, time, content));
            if about.is_dir() {
                folders.push(path);
            }
        }
    }
    found
}

/// A tree with what trees have: small and larger files, odd names, folders with nothing in them.
fn plant(root: &Path) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    let write = |name: &OsStr, content: &[u8], mode: u32| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let file = fs::File::open(&path).unwrap();
        file.set_modified(old).unwrap();
    };
    for n in 0..200 {
        let name = format!("many/{}/{n}", n % 7);
        write(OsStr::new(&name), &noise(n * 37, 7), 0o644);
    }
    for name in [
        &b"a b"[..],
        b"-r",
        b"new\nline",
        b"*?[x]",
        b"quo'te\"",
        b"back\\slash",
        b"\xff\xfe",
        b".dot",
        "ü€".as_bytes(),
        b"co:lon",
    ] {
        write(OsStr::from_bytes(name), name, 0o600);
    }
    write(OsStr::new("run"), &noise(700_001, 3), 0o755);
    write(OsStr::new("empty"), b"", 0o640);
    fs::create_dir_all(root.join("nothing/in/it")).unwrap();
    symlink("run", root.join("link")).unwrap();
    for folder in ["nothing/in/it", "nothing/in", "nothing", "many"] {
        let folder = root.join(folder);
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        fs::File::open(folder).unwrap().set_modified(old).unwrap();
    }
}

#[test]
fn big_files_go_both_ways() {
    with_both(|desk| {
        let mut content = noise(24 << 20, 1);
        content.resize(40 << 20, 0);
        content.extend(noise((1 << 20) + 13, 2));
        fs::write(desk.here("big"), content).unwrap();
        let up = desk.scp(&["big", &desk.word("")]).success().unwrap();
        assert_eq!(up, "", "nothing is said where there is no terminal");
        same(&desk.here("big"), &desk.there("big"));
        desk.scp(&["-C", &desk.word("big"), "back"])
            .success()
            .unwrap();
        same(&desk.here("big"), &desk.here("back"));
        // Over what is there already, and longer.
        fs::write(desk.here("small"), b"small").unwrap();
        desk.scp(&["small", &desk.word("big")]).success().unwrap();
        desk.scp(&[&desk.word("big"), "back"]).success().unwrap();
        assert_eq!(fs::read(desk.here("back")).unwrap(), b"small");
    });
}

#[test]
fn trees_arrive_as_they_are() {
    with_both(|desk| {
        plant(&desk.here("tree"));
        desk.scp(&["-rp", "tree", &desk.word("copy")])
            .success()
            .unwrap();
        assert!(tree(&desk.here("tree"), true) == tree(&desk.there("copy"), true));
        // Into a folder that is there, it gets its own name.
        desk.scp(&["-rp", &desk.word("copy"), "."])
            .success()
            .unwrap();
        assert!(tree(&desk.here("tree"), true) == tree(&desk.here("copy"), true));
        // From there to there, and by sftp.
        desk.scp(&["-rp", "-3", &desk.word("copy"), &desk.word("second")])
            .success()
            .unwrap();
        assert!(tree(&desk.here("tree"), true) == tree(&desk.there("second"), true));
        desk.sftp(&[], "get -r second third\nput -r third\n")
            .success()
            .unwrap();
        assert!(tree(&desk.here("tree"), false) == tree(&desk.there("third"), false));
    });
}

#[test]
fn copies_that_were_cut_go_on() {
    with_both(|desk| {
        let content = noise(4 << 20, 5);
        fs::write(desk.here("file"), &content).unwrap();
        fs::write(desk.there("file"), &content).unwrap();
        // 8 Mbit/s: it would take four seconds.
        for (from, to, copy) in [
            ("file".to_owned(), desk.word("up"), desk.there("up")),
            (desk.word("file"), "down".to_owned(), desk.here("down")),
        ] {
            let mut slow = desk.command("scp");
            slow.args(["-l", "8000", &from, &to]);
            let mut slow = slow.spawn().unwrap();
            let begun = Instant::now();
            let len = || fs::metadata(&copy).map_or(0, |about| about.len());
            while len() < 300_000 {
                assert!(begun.elapsed() < LIMIT, "{} octets", len());
                std::thread::sleep(Duration::from_millis(20));
            }
            slow.kill().unwrap();
            slow.wait().unwrap();
            // What is on its way still arrives there.
            std::thread::sleep(Duration::from_millis(300));
            let part = fs::read(&copy).unwrap();
            assert!(part.len() < content.len(), "it was cut");
            // What is there is not sent again: a mark in it stays.
            let mut marked = part;
            marked[0] ^= 0xff;
            fs::write(&copy, &marked).unwrap();
            desk.scp(&["--resume", &from, &to]).success().unwrap();
            let whole = fs::read(&copy).unwrap();
            assert_eq!(whole.len(), content.len());
            assert!(whole[1..] == content[1..] && whole[0] == marked[0]);
            // There is nothing to be done any more, and of a longer copy nothing can be made.
            desk.scp(&["--resume", &from, &to]).success().unwrap();
            assert!(fs::read(&copy).unwrap() == whole);
            fs::write(&copy, [&whole[..], b"more"].concat()).unwrap();
            let longer = desk.scp(&["--resume", &from, &to]);
            assert_eq!(longer.code, Some(1), "{}", longer.output);
            assert!(longer.output.contains("longer"), "{}", longer.output);
        }
        for name in [desk.here("a"), desk.there("b")] {
            fs::write(name, &content[..1_234_567]).unwrap();
        }
        desk.sftp(&[], "reget file a\nreput file b\n")
            .success()
            .unwrap();
        same(&desk.here("file"), &desk.here("a"));
        same(&desk.here("file"), &desk.there("b"));
    });
}

#[test]
fn what_fails_is_named_and_the_rest_is_copied() {
    with_both(|desk| {
        for name in ["one", "two"] {
            fs::write(desk.here(name), name).unwrap();
            fs::write(desk.there(name), name).unwrap();
        }
        fs::create_dir(desk.there("into")).unwrap();
        fs::create_dir(desk.here("folder")).unwrap();
        let ended = desk.scp(&["one", "missing", "folder", "two", &desk.word("into")]);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        for words in ["missing: No such file", "folder: is a folder"] {
            assert!(ended.output.contains(words), "{}", ended.output);
        }
        same(&desk.here("one"), &desk.there("into/one"));
        same(&desk.here("two"), &desk.there("into/two"));

        let word = desk.word("missing");
        let ended = desk.scp(&[&word, &desk.word("one"), "folder"]);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        assert!(ended.output.contains("there/missing: No such file"));
        same(&desk.here("one"), &desk.here("folder/one"));

        for args in [
            [&desk.word("one")[..], &desk.word("two"), "no/folder"],
            ["one", "two", &desk.word("three")],
        ] {
            let ended = desk.scp(&args);
            assert_eq!(ended.code, Some(1), "{}", ended.output);
            assert!(ended.output.contains("is no folder"), "{}", ended.output);
        }
        // A place that cannot be written to, here and there.
        let ended = desk.scp(&["one", &desk.word("no/folder/x")]);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        assert!(ended.output.contains("one: No such file"));
        let ended = desk.scp(&["one", "two"]);
        assert_eq!(ended.code, Some(2), "{}", ended.output);
        #[cfg(target_os = "linux")]
        {
            let ended = desk.scp(&[&desk.word("one"), "/dev/full"]);
            assert_eq!(ended.code, Some(1), "{}", ended.output);
            assert!(ended.output.contains("No space left"), "{}", ended.output);
        }
        let closed = format!("scp://127.0.0.1:{}/x", free_port());
        let ended = desk.scp(&["one", &closed]);
        assert_eq!(ended.code, Some(255), "{}", ended.output);
    });
}

#[test]
fn patterns_are_for_the_host_where_they_are() {
    with_both(|desk| {
        for name in ["a1", "a2", "b1", ".a3", "c*", "[x]"] {
            fs::write(desk.there(name), name).unwrap();
        }
        fs::create_dir(desk.there("d")).unwrap();
        fs::write(desk.there("d/a4"), "").unwrap();
        let names = |folder: &str| -> Vec<String> {
            let path = desk.here(folder);
            let entries = fs::read_dir(&path).unwrap();
            let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
            let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
            names.sort();
            fs::remove_dir_all(path).unwrap();
            names
        };
        for (pattern, wanted) in [
            ("a*", &["a1", "a2"][..]),
            ("[!a]1", &["b1"]),
            ("c\\*", &["c*"]),
            ("[x]", &["[x]"]),
            ("*/a?", &["a4"]),
        ] {
            fs::create_dir(desk.here("to")).unwrap();
            desk.scp(&[&desk.word(pattern), "to"]).success().unwrap();
            assert_eq!(names("to"), wanted, "{pattern}");
        }
        fs::create_dir(desk.here("to")).unwrap();
        let commands = "lcd to\nmget a* \"c*\"\nls '[x]'\n";
        let said = desk.sftp(&[], commands).success().unwrap();
        assert_eq!(names("to"), ["a1", "a2", "c*"]);
        assert!(said.contains("ls '[x]'\n[x]"), "{said}");
    });
}

#[test]
fn a_batch_does_what_it_says_and_ends_at_what_fails() {
    with_both(|desk| {
        fs::write(desk.here("file"), b"content").unwrap();
        let commands = "\
    # nothing
    pwd
    mkdir -p one/two
    cd one/two
    put file 'a file'
    ls -l
    chmod 600 'a file'
    rename 'a file' b
    ln b c
    ln -s b d
    symlink b e
    get e back
    rm c
    rmdir ../two/../none
    ";
        let ended = desk.sftp(&[], commands);
        assert_eq!(ended.code, Some(1), "{}", ended.output);
        let said = ended.output;
        for words in [
            "sftp> pwd\nRemote working directory: ",
            "sftp> ls -l\n-rw-r--r--",
            "a file\n",
            "one/two/../two/../none: No such file",
        ] {
            assert!(said.contains(words), "{words} in\n{said}");
        }
        let two = desk.there("one/two");
        let about = fs::metadata(two.join("b")).unwrap();
        assert_eq!((about.mode() & 0o777, about.nlink()), (0o600, 1));
        assert_eq!(fs::read_link(two.join("d")).unwrap(), Path::new("b"));
        assert_eq!(fs::read_link(two.join("e")).unwrap(), Path::new("b"));
        same(&desk.here("file"), &desk.here("back"));

        let forgiven = desk.sftp(
            &[],
            "-rm none\n@cd one\n-nonsense\nmkdir done\nbye\nmkdir not\n",
        );
        let said = forgiven.success().unwrap();
        assert!(!said.contains("sftp> @cd"), "{said}");
        assert!(desk.there("one/done").is_dir() && !desk.there("one/not").exists());

        for wrong in [
            "get",
            "ls -z",
            "cd none",
            "cd one/two/b",
            "put 'x",
            "chmod x one",
        ] {
            let ended = desk.sftp(&[], &format!("{wrong}\nmkdir never\n"));
            assert_eq!(ended.code, Some(1), "{wrong}: {}", ended.output);
            assert!(!desk.there("never").exists());
        }
        // A file that is named is fetched, and that is all.
        let mut command = desk.command("sftp");
        command.arg(desk.word("one/two/b"));
        openssh::run(command, LIMIT).unwrap().success().unwrap();
        same(&desk.here("file"), &desk.here("b"));
    });
}
