//! What a client may not: leave the root, change what is read only.

use super::*;

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
