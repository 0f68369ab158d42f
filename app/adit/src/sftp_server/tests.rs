//! Requests in, answers out, over files of a folder of the test's own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use adit_ssh::sftp::{
    Attrs, Client, Extended, Extension, FileKind, Frames, Ids, OpenFlags, Reply, Request, StatVfs,
    Status, Texts,
};

use super::session::Session;
use super::{Options, ServeError, serve};

/// A folder `root` with a file in it, and a secret beside it.
struct Place {
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("adit-sftp-{}-{number}", std::process::id());
        let path = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        fs::create_dir_all(path.join("root/sub")).unwrap();
        fs::write(path.join("secret"), "top secret").unwrap();
        fs::write(path.join("root/file"), "0123456789").unwrap();
        Self { path }
    }

    fn root(&self) -> PathBuf {
        self.path.join("root")
    }

    fn confined(&self) -> Talk {
        Talk::new(&Options {
            root: Some(self.root()),
            ..Options::default()
        })
    }

    fn open(&self) -> Talk {
        Talk::new(&Options {
            start: Some(self.root()),
            ..Options::default()
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A session, asked one thing after the other.
struct Talk {
    session: Session,
    out: Vec<u8>,
}

impl Talk {
    fn new(options: &Options) -> Self {
        let mut talk = Self {
            session: Session::new(options).unwrap(),
            out: Vec::new(),
        };
        talk.session
            .execute(&[1, 0, 0, 0, 3], &mut talk.out)
            .unwrap();
        talk
    }

    /// The answer lies in `out` until the next question.
    fn ask(&mut self, request: &Request<'_>) -> Reply<'_> {
        let mut frame = Vec::new();
        request.put(7, &mut frame);
        self.out.clear();
        self.session.execute(&frame[4..], &mut self.out).unwrap();
        let (id, reply) = Reply::parse(&self.out[4..]).unwrap();
        assert_eq!(id, 7);
        reply
    }

    fn status(&mut self, request: &Request<'_>) -> Status {
        match self.ask(request) {
            Reply::Status(reply) => reply.status,
            other => panic!("{other:?} to {request:?}"),
        }
    }

    fn done(&mut self, request: &Request<'_>) {
        assert_eq!(
            self.status(request),
            Status::Ok,
            "{request:?}: {:?}",
            String::from_utf8_lossy(&self.out)
        );
    }

    fn handle(&mut self, path: &str, flags: OpenFlags) -> Option<Vec<u8>> {
        let request = Request::Open {
            path: path.as_bytes(),
            flags,
            attrs: Attrs::default(),
        };
        match self.ask(&request) {
            Reply::Handle(handle) => Some(handle.to_vec()),
            _ => None,
        }
    }

    fn read(&mut self, path: &str) -> Option<Vec<u8>> {
        let handle = self.handle(path, OpenFlags::READ)?;
        let request = Request::Read {
            handle: &handle[..],
            offset: 0,
            len: u32::MAX,
        };
        let Reply::Data(data) = self.ask(&request) else {
            panic!("{:?}", self.out);
        };
        let data = data.to_vec();
        self.done(&Request::Close {
            handle: &handle[..],
        });
        Some(data)
    }

    fn path(&mut self, request: &Request<'_>) -> Option<String> {
        match self.ask(request) {
            Reply::Names(names) => {
                let name = names.iter().next().unwrap();
                Some(String::from_utf8(name.name.to_vec()).unwrap())
            }
            _ => None,
        }
    }

    fn real(&mut self, path: &str) -> Option<String> {
        let path = path.as_bytes();
        self.path(&Request::Realpath { path })
    }

    fn kind(&mut self, request: &Request<'_>) -> Option<FileKind> {
        match self.ask(request) {
            Reply::Attrs(attrs) => attrs.kind(),
            _ => None,
        }
    }
}

const NEW: OpenFlags = OpenFlags::WRITE.and(OpenFlags::CREATE);

#[test]
fn no_path_and_no_link_leads_out_of_the_root() {
    let place = Place::new();
    let root = place.root();
    symlink("../secret", root.join("up")).unwrap();
    symlink(place.path.join("secret"), root.join("absolute")).unwrap();
    symlink("..", root.join("parent")).unwrap();
    symlink("/file", root.join("inside")).unwrap();
    let mut talk = place.confined();
    assert_eq!(talk.read("/file").as_deref(), Some(&b"0123456789"[..]));
    assert_eq!(
        talk.read("../../file").as_deref(),
        Some(&b"0123456789"[..]),
        "`..` ends at the root"
    );
    assert_eq!(
        talk.read("inside").as_deref(),
        Some(&b"0123456789"[..]),
        "links begin at the root"
    );
    for path in [
        "../secret",
        "/../secret",
        "up",
        "absolute",
        "parent/secret",
        "sub/../../secret",
        "/proc/self/root/etc/passwd",
    ] {
        assert_eq!(talk.read(path), None, "{path}");
        let bytes = path.as_bytes();
        assert_eq!(talk.kind(&Request::Stat { path: bytes }), None, "{path}");
        let attrs = Attrs {
            permissions: Some(0o777),
            ..Attrs::default()
        };
        assert_eq!(
            talk.status(&Request::Setstat { path: bytes, attrs }),
            Status::NoSuchFile,
            "{path}"
        );
    }
    for path in ["../new", "/../../new", "parent/new"] {
        let handle = talk.handle(path, NEW).unwrap();
        talk.done(&Request::Close {
            handle: &handle[..],
        });
        assert!(
            !place.path.join("new").exists() && root.join("new").exists(),
            "{path}"
        );
        talk.done(&Request::Remove {
            path: path.as_bytes(),
        });
        talk.done(&Request::Mkdir {
            path: path.as_bytes(),
            attrs: Attrs::default(),
        });
        assert!(
            !place.path.join("new").exists() && root.join("new").is_dir(),
            "{path}"
        );
        talk.done(&Request::Rmdir {
            path: path.as_bytes(),
        });
    }
    // What is done to a name is done inside.
    talk.done(&Request::Rename {
        from: b"file",
        to: b"../moved",
    });
    assert!(root.join("moved").exists());
    let link = Extended::HardLink {
        from: b"/moved",
        to: b"/../../linked",
    };
    talk.done(&Request::Extended(link));
    assert_eq!(fs::metadata(root.join("linked")).unwrap().nlink(), 2);
    talk.done(&Request::Symlink {
        target: b"/etc/passwd",
        link: b"../evil",
    });
    assert_eq!(talk.read("evil"), None);
    assert!(talk.kind(&Request::Stat { path: b"/.." }).is_some());
    for path in ["/", "/..", "."] {
        assert_ne!(
            talk.status(&Request::Rmdir {
                path: path.as_bytes()
            }),
            Status::Ok
        );
    }
    assert_eq!(fs::read(place.path.join("secret")).unwrap(), b"top secret");
}

#[test]
fn paths_are_told_as_the_client_sees_them() {
    let place = Place::new();
    symlink("sub", place.root().join("link")).unwrap();
    let mut talk = place.confined();
    for (path, real) in [
        (".", "/"),
        ("", "/"),
        ("/../..", "/"),
        ("link", "/sub"),
        ("link/../new", "/new"),
        ("sub//x", "/sub/x"),
    ] {
        assert_eq!(talk.real(path).as_deref(), Some(real), "{path}");
    }
    assert_eq!(talk.real("absent/x"), None);
    let expand = |path| Request::Extended(Extended::ExpandPath { path });
    assert_eq!(talk.path(&expand(b"~/sub")).as_deref(), Some("/sub"));
    assert_eq!(talk.path(&expand(b"~root/sub")).as_deref(), Some("/sub"));

    let mut talk = place.open();
    let root = place.root().to_str().unwrap().to_owned();
    assert_eq!(talk.real(".").as_deref(), Some(root.as_str()));
    assert_eq!(talk.real("link/new"), Some(format!("{root}/sub/new")));
    let home = talk.path(&Request::Extended(Extended::HomeDirectory {
        user: b"root",
    }));
    assert_eq!(home.as_deref(), Some("/root"));
    assert_eq!(talk.path(&expand(b"~root")), home);
    assert_eq!(talk.path(&expand(b"~no-such-user/x")), None);
}

#[test]
fn a_server_that_is_read_only_changes_nothing() {
    let place = Place::new();
    let mut talk = Talk::new(&Options {
        root: Some(place.root()),
        read_only: true,
        start: None,
    });
    let mut client = Client::<()>::new(&mut Vec::new());
    let _ = client.handle(&talk.out[4..], &mut Vec::new()).unwrap();
    assert!(!client.extensions().has(Extension::PosixRename));
    assert!(client.extensions().has(Extension::StatVfs));
    let attrs = Attrs {
        permissions: Some(0o600),
        ..Attrs::default()
    };
    let handle = talk.handle("file", OpenFlags::READ).unwrap();
    let handle = &handle[..];
    for flags in [
        NEW,
        OpenFlags::TRUNCATE,
        OpenFlags::READ.and(OpenFlags::CREATE),
        OpenFlags::APPEND,
    ] {
        assert_eq!(talk.handle("file", flags), None);
    }
    for request in [
        Request::Write {
            handle,
            offset: 0,
            data: b"x",
        },
        Request::Setstat {
            path: b"file",
            attrs,
        },
        Request::Fsetstat { handle, attrs },
        Request::Remove { path: b"file" },
        Request::Mkdir {
            path: b"new",
            attrs,
        },
        Request::Rmdir { path: b"sub" },
        Request::Rename {
            from: b"file",
            to: b"new",
        },
        Request::Symlink {
            target: b"file",
            link: b"new",
        },
    ] {
        assert_eq!(
            talk.status(&request),
            Status::PermissionDenied,
            "{request:?}"
        );
    }
    for extended in [
        Extended::PosixRename {
            from: b"file",
            to: b"new",
        },
        Extended::HardLink {
            from: b"file",
            to: b"new",
        },
        Extended::LSetStat {
            path: b"file",
            attrs,
        },
        Extended::CopyData {
            from: handle,
            from_offset: 0,
            len: 0,
            to: handle,
            to_offset: 0,
        },
    ] {
        assert_eq!(
            talk.status(&Request::Extended(extended)),
            Status::Unsupported
        );
    }
    assert_eq!(talk.read("file").as_deref(), Some(&b"0123456789"[..]));
    assert_eq!(fs::read_dir(place.root()).unwrap().count(), 2);
}

#[test]
fn files_are_written_read_and_changed() {
    let place = Place::new();
    for mut talk in [place.open(), place.confined()] {
        let file = place.root().join("f");
        let handle = talk.handle("f", OpenFlags::READ.and(NEW)).unwrap();
        let handle = &handle[..];
        talk.done(&Request::Write {
            handle,
            offset: 5,
            data: b"world",
        });
        talk.done(&Request::Write {
            handle,
            offset: 0,
            data: b"hello",
        });
        let read = |offset, len| Request::Read {
            handle,
            offset,
            len,
        };
        assert_eq!(talk.ask(&read(3, 4)), Reply::Data(b"lowo"));
        assert_eq!(talk.status(&read(10, 4)), Status::Eof);
        assert_eq!(talk.status(&read(u64::MAX, 4)), Status::BadMessage);
        talk.done(&Request::Extended(Extended::FSync { handle }));
        let attrs = Attrs {
            size: Some(4),
            permissions: Some(0o640),
            times: Some((1, 86_400)),
            owner: None,
        };
        talk.done(&Request::Fsetstat { handle, attrs });
        let Reply::Attrs(found) = talk.ask(&Request::Fstat { handle }) else {
            panic!()
        };
        assert_eq!((found.size, found.times), (Some(4), Some((1, 86_400))));
        assert_eq!(found.permissions, Some(0o100_640));
        let attrs = Attrs {
            size: Some(2),
            permissions: Some(0o600),
            times: Some((5, 6)),
            owner: found.owner,
        };
        talk.done(&Request::Setstat { path: b"f", attrs });
        let about = fs::metadata(&file).unwrap();
        assert_eq!(
            (about.len(), about.mtime(), about.mode()),
            (2, 6, 0o100_600)
        );
        assert_eq!(fs::read(&file).unwrap(), b"he");
        talk.done(&Request::Close { handle });
        // Appending does not look at the offset.
        let handle = talk
            .handle("f", OpenFlags::WRITE.and(OpenFlags::APPEND))
            .unwrap();
        talk.done(&Request::Write {
            handle: &handle[..],
            offset: 0,
            data: b"!",
        });
        assert_eq!(fs::read(&file).unwrap(), b"he!");
        assert_eq!(talk.handle("f", NEW.and(OpenFlags::EXCLUSIVE)), None);
        assert_eq!(talk.handle("f\0g", OpenFlags::READ), None);
        assert_eq!(talk.handle("", OpenFlags::READ), None);
        let folder = talk.handle("sub", OpenFlags::READ).unwrap();
        assert_eq!(
            talk.status(&Request::Read {
                handle: &folder[..],
                offset: 0,
                len: 1
            }),
            Status::Failure
        );
        talk.done(&Request::Remove { path: b"f" });
    }
}

#[test]
fn names_are_made_moved_and_removed() {
    let place = Place::new();
    for mut talk in [place.open(), place.confined()] {
        let (from, to) = (&b"file"[..], &b"sub/there"[..]);
        fs::write(place.root().join("sub/there"), "old").unwrap();
        assert_eq!(
            talk.status(&Request::Rename { from, to }),
            Status::Failure,
            "it is there"
        );
        talk.done(&Request::Extended(Extended::PosixRename { from, to }));
        assert_eq!(
            fs::read(place.root().join("sub/there")).unwrap(),
            b"0123456789"
        );
        talk.done(&Request::Rename { from: to, to: from });
        talk.done(&Request::Symlink {
            target: b"nowhere",
            link: b"l",
        });
        assert_eq!(
            talk.path(&Request::Readlink { path: b"l" }).as_deref(),
            Some("nowhere")
        );
        assert_eq!(
            talk.kind(&Request::Lstat { path: b"l" }),
            Some(FileKind::Symlink)
        );
        assert_eq!(
            talk.status(&Request::Stat { path: b"l" }),
            Status::NoSuchFile
        );
        let set = |attrs| Request::Extended(Extended::LSetStat { path: b"l", attrs });
        talk.done(&set(Attrs {
            times: Some((3, 4)),
            ..Attrs::default()
        }));
        assert_eq!(
            fs::symlink_metadata(place.root().join("l"))
                .unwrap()
                .mtime(),
            4
        );
        let attrs = Attrs {
            permissions: Some(0o600),
            ..Attrs::default()
        };
        assert_eq!(talk.status(&set(attrs)), Status::Unsupported);
        talk.done(&Request::Extended(Extended::LSetStat {
            path: b"file",
            attrs,
        }));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place.root().join("file")), 0o600);
        talk.done(&Request::Remove { path: b"l" });
        let attrs = Attrs {
            permissions: Some(0o700),
            ..Attrs::default()
        };
        talk.done(&Request::Mkdir { path: b"d/", attrs });
        assert_eq!(mode(&place.root().join("d")), 0o700);
        assert_ne!(talk.status(&Request::Remove { path: b"d" }), Status::Ok);
        talk.done(&Request::Rename {
            from: b"d",
            to: b"e",
        });
        talk.done(&Request::Rmdir { path: b"e" });
        assert_eq!(
            talk.status(&Request::Rmdir { path: b"e" }),
            Status::NoSuchFile
        );
        assert_eq!(
            talk.status(&Request::Opendir { path: b"file" }),
            Status::NoSuchFile
        );
    }
}

#[test]
fn a_folder_is_listed_in_parts() {
    let place = Place::new();
    let count = 700;
    for n in 0..count {
        fs::write(
            place.root().join(format!("sub/a-rather-long-name-{n:04}")),
            "",
        )
        .unwrap();
    }
    let mut talk = place.confined();
    let Reply::Handle(handle) = talk.ask(&Request::Opendir { path: b"sub" }) else {
        panic!()
    };
    let handle = handle.to_vec();
    let request = Request::Readdir {
        handle: &handle[..],
    };
    let (mut found, mut parts) = (Vec::new(), 0);
    loop {
        match talk.ask(&request) {
            Reply::Names(names) => {
                parts += 1;
                for name in names.iter() {
                    let line = String::from_utf8_lossy(name.line);
                    assert!(
                        line.ends_with(&*String::from_utf8_lossy(name.name)),
                        "{line}"
                    );
                    assert!(
                        line.starts_with(['-', 'd']) && line.as_bytes()[10] == b' ',
                        "{line}"
                    );
                    found.push(name.name.to_vec());
                }
                assert!(talk.out.len() < 34_000, "what every client takes");
            }
            Reply::Status(reply) => {
                assert_eq!(reply.status, Status::Eof);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    found.sort();
    found.dedup();
    assert_eq!(found.len(), count + 2, "with the two points");
    assert!(parts > 1);
}

#[test]
fn copies_stay_in_the_server() {
    let place = Place::new();
    let content: Vec<u8> = (0..3_000_000u32)
        .map(|n| n.to_le_bytes()[n as usize % 4])
        .collect();
    fs::write(place.root().join("big"), &content).unwrap();
    let mut talk = place.confined();
    let from = talk.handle("big", OpenFlags::READ).unwrap();
    let to = talk.handle("copy", NEW).unwrap();
    let copy = |from, to, from_offset, len, to_offset| {
        Request::Extended(Extended::CopyData {
            from,
            from_offset,
            len,
            to,
            to_offset,
        })
    };
    talk.done(&copy(&from[..], &to[..], 0, 0, 0));
    assert_eq!(fs::read(place.root().join("copy")).unwrap(), content);
    talk.done(&copy(&from[..], &to[..], 10, 5, 100));
    let copied = fs::read(place.root().join("copy")).unwrap();
    assert_eq!(copied[100..105], content[10..15]);
    assert_eq!(copied[105..], content[105..]);
    let own = talk.handle("big", OpenFlags::WRITE).unwrap();
    assert_ne!(
        talk.status(&copy(&from[..], &own[..], 0, 0, 3_000_000)),
        Status::Ok,
        "it would never end"
    );
    let version = Talk::new(&Options::default()).handle("/proc/version", OpenFlags::READ);
    assert!(version.is_some());
    let mut talk = place.open();
    let from = talk.handle("/proc/version", OpenFlags::READ).unwrap();
    let to = talk.handle("version", NEW).unwrap();
    talk.done(&copy(&from[..], &to[..], 0, 0, 0));
    let wanted = fs::read("/proc/version").unwrap();
    assert_eq!(
        fs::read(place.root().join("version")).unwrap(),
        wanted,
        "a file without a length"
    );
}

#[test]
fn the_machine_is_described() {
    let place = Place::new();
    let mut talk = place.confined();
    let Reply::Extended(data) = talk.ask(&Request::Extended(Extended::StatVfs { path: b"/" }))
    else {
        panic!()
    };
    let by_path = StatVfs::parse(data).unwrap();
    assert!(by_path.blocks > 0 && by_path.fragment > 0 && by_path.name_max > 0);
    let handle = talk.handle("file", OpenFlags::READ).unwrap();
    let handle = &handle[..];
    let Reply::Extended(data) = talk.ask(&Request::Extended(Extended::FStatVfs { handle })) else {
        panic!()
    };
    assert_eq!(StatVfs::parse(data).unwrap().id, by_path.id);
    let users = Ids::new(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe]).unwrap();
    let groups = Ids::new(&[0, 0, 0, 0]).unwrap();
    let ask = Request::Extended(Extended::UsersGroupsById { users, groups });
    let Reply::Extended(data) = talk.ask(&ask) else {
        panic!()
    };
    let [users, groups] = Texts::parse_pair(data).unwrap();
    assert_eq!(users.iter().collect::<Vec<_>>(), [&b"root"[..], b""]);
    assert_eq!(groups.iter().count(), 1);
}

#[test]
fn a_whole_session_over_streams_ends_well_or_says_why() {
    let place = Place::new();
    let options = Options {
        root: Some(place.root()),
        ..Options::default()
    };
    let mut input = Vec::new();
    let _ = Client::<()>::new(&mut input);
    Request::Stat { path: b"file" }.put(5, &mut input);
    for _ in 0..20 {
        Request::Readdir {
            handle: &b"none"[..],
        }
        .put(6, &mut input);
    }
    let mut output = Vec::new();
    serve(&input[..], &mut output, &options).unwrap();
    let (mut data, mut count) = (&output[..], 0);
    let mut frames = Frames::new();
    while frames.next(&mut data).unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 22, "all are answered");
    let cut = serve(&input[..input.len() - 1], Vec::new(), &options);
    assert!(matches!(cut, Err(ServeError::Cut)));
    let broken = serve(&[0, 0, 0, 1, 9][..], Vec::new(), &options);
    assert!(matches!(broken, Err(ServeError::Protocol(_))));
    let options = Options {
        root: Some(place.root().join("absent")),
        ..Options::default()
    };
    let why = serve(&input[..], Vec::new(), &options).unwrap_err();
    assert!(why.to_string().contains("absent"), "{why}");
    let options = Options {
        root: Some(place.root()),
        start: Some("sub".into()),
        read_only: false,
    };
    assert_eq!(Talk::new(&options).real(".").as_deref(), Some("/sub"));
}
