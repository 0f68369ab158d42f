//! Clients cannot leave the root, and cannot change a read-only tree or protected files.

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
        assert_eq!(
            talk.kind(&SftpRequest::Stat { path: bytes }),
            None,
            "{path}"
        );
        let attrs = FileAttrs {
            permissions: Some(0o777),
            ..FileAttrs::default()
        };
        assert_eq!(
            talk.status(&SftpRequest::Setstat { path: bytes, attrs }),
            SftpStatus::NoSuchFile,
            "{path}"
        );
    }
    for path in ["../new", "/../../new", "parent/new"] {
        let handle = talk.handle(path, NEW).unwrap();
        talk.done(&SftpRequest::Close {
            handle: &handle[..],
        });
        assert!(
            !place.path.join("new").exists() && root.join("new").exists(),
            "{path}"
        );
        talk.done(&SftpRequest::Remove {
            path: path.as_bytes(),
        });
        talk.done(&SftpRequest::Mkdir {
            path: path.as_bytes(),
            attrs: FileAttrs::default(),
        });
        assert!(
            !place.path.join("new").exists() && root.join("new").is_dir(),
            "{path}"
        );
        talk.done(&SftpRequest::Rmdir {
            path: path.as_bytes(),
        });
    }
    // Changes of names happen inside the root.
    talk.done(&SftpRequest::Rename {
        from: b"file",
        to: b"../moved",
    });
    assert!(root.join("moved").exists());
    let link = ExtendedRequest::HardLink {
        from: b"/moved",
        to: b"/../../linked",
    };
    talk.done(&SftpRequest::Extended(link));
    assert_eq!(fs::metadata(root.join("linked")).unwrap().nlink(), 2);
    talk.done(&SftpRequest::Symlink {
        target: b"/etc/passwd",
        link: b"../evil",
    });
    assert_eq!(talk.read("evil"), None);
    assert!(talk.kind(&SftpRequest::Stat { path: b"/.." }).is_some());
    for path in ["/", "/..", "."] {
        assert_ne!(
            talk.status(&SftpRequest::Rmdir {
                path: path.as_bytes()
            }),
            SftpStatus::Ok
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
    let expand = |path| SftpRequest::Extended(ExtendedRequest::ExpandPath { path });
    assert_eq!(talk.path(&expand(b"~/sub")).as_deref(), Some("/sub"));
    assert_eq!(talk.path(&expand(b"~root/sub")).as_deref(), Some("/sub"));

    let mut talk = place.open();
    let root = place.root().to_str().unwrap().to_owned();
    assert_eq!(talk.real(".").as_deref(), Some(root.as_str()));
    assert_eq!(talk.real("link/new"), Some(format!("{root}/sub/new")));
    let home = talk.path(&SftpRequest::Extended(ExtendedRequest::HomeDirectory {
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
        ..Options::default()
    });
    let mut client = SftpClient::<()>::new(&mut Vec::new());
    let _ = client
        .handle_input(&talk.out[4..], &mut Vec::new())
        .unwrap();
    assert!(!client.extensions().contains(Extension::PosixRename));
    assert!(client.extensions().contains(Extension::StatVfs));
    let attrs = FileAttrs {
        permissions: Some(0o600),
        ..FileAttrs::default()
    };
    let handle = talk.handle("file", OpenFlags::READ).unwrap();
    let handle = &handle[..];
    for flags in [
        NEW,
        OpenFlags::TRUNCATE,
        OpenFlags::READ.union(OpenFlags::CREATE),
        OpenFlags::APPEND,
    ] {
        assert_eq!(talk.handle("file", flags), None);
    }
    for request in [
        SftpRequest::Write {
            handle,
            offset: 0,
            data: b"x",
        },
        SftpRequest::Setstat {
            path: b"file",
            attrs,
        },
        SftpRequest::Fsetstat { handle, attrs },
        SftpRequest::Remove { path: b"file" },
        SftpRequest::Mkdir {
            path: b"new",
            attrs,
        },
        SftpRequest::Rmdir { path: b"sub" },
        SftpRequest::Rename {
            from: b"file",
            to: b"new",
        },
        SftpRequest::Symlink {
            target: b"file",
            link: b"new",
        },
    ] {
        assert_eq!(
            talk.status(&request),
            SftpStatus::PermissionDenied,
            "{request:?}"
        );
    }
    for extended in [
        ExtendedRequest::PosixRename {
            from: b"file",
            to: b"new",
        },
        ExtendedRequest::HardLink {
            from: b"file",
            to: b"new",
        },
        ExtendedRequest::LSetStat {
            path: b"file",
            attrs,
        },
        ExtendedRequest::CopyData {
            from: handle,
            from_offset: 0,
            len: 0,
            to: handle,
            to_offset: 0,
        },
    ] {
        assert_eq!(
            talk.status(&SftpRequest::Extended(extended)),
            SftpStatus::Unsupported
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
    let _ = SftpClient::<()>::new(&mut input);
    SftpRequest::Stat { path: b"file" }.encode(5, &mut input);
    for _ in 0..20 {
        SftpRequest::Readdir {
            handle: &b"none"[..],
        }
        .encode(6, &mut input);
    }
    let mut output = Vec::new();
    serve_on(&input[..], &mut output, &options).unwrap();
    let (mut data, mut count) = (&output[..], 0);
    let mut frames = FrameReader::new();
    while frames.next_frame(&mut data).unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 22, "all are answered");
    let cut = serve_on(&input[..input.len() - 1], Vec::new(), &options);
    assert!(matches!(cut, Err(ServeError::Truncated)));
    let broken = serve_on(&[0, 0, 0, 1, 9][..], Vec::new(), &options);
    assert!(matches!(broken, Err(ServeError::Protocol(_))));
    let options = Options {
        root: Some(place.root().join("absent")),
        ..Options::default()
    };
    let why = serve_on(&input[..], Vec::new(), &options).unwrap_err();
    assert!(why.to_string().contains("absent"), "{why}");
    let options = Options {
        root: Some(place.root()),
        start: Some("sub".into()),
        read_only: false,
        ..Options::default()
    };
    assert_eq!(Talk::new(&options).real(".").as_deref(), Some("/sub"));
}

/// Protected files cannot be accessed: by their name, by another one, by a directory on the way, or before they
/// exist.
#[test]
fn what_is_protected_stays_as_it_is() {
    let place = Place::new();
    let root = place.root();
    fs::create_dir_all(root.join("real/keys")).unwrap();
    fs::create_dir_all(root.join("state/deep")).unwrap();
    fs::write(root.join("real/keys/list"), "mine").unwrap();
    fs::write(root.join("state/deep/secret"), "mine").unwrap();
    symlink("real", root.join("way")).unwrap();
    symlink("way/keys/list", root.join("soft")).unwrap();
    symlink("later/list", root.join("dangling")).unwrap();
    fs::hard_link(root.join("real/keys/list"), root.join("hard")).unwrap();
    let protected = ["way/keys/list", "state", "later/list"];
    let options = Options {
        protected: protected.map(|path| root.join(path)).to_vec(),
        ..Options::default()
    };
    let confined = Options {
        root: Some(root.clone()),
        ..options.clone()
    };
    let open = Options {
        start: Some(root.clone()),
        ..options
    };
    for options in [confined, open] {
        let mut talk = Talk::new(&options);
        for path in [
            "way/keys/list",
            "real/keys/../keys/list",
            "soft",
            "hard",
            "state/deep/secret",
            "state/new",
            "later",
            "dangling",
        ] {
            assert_eq!(talk.handle(path, NEW), None, "{path}");
            assert_eq!(talk.read(path), None, "{path}");
            let attrs = FileAttrs {
                size: Some(0),
                permissions: Some(0o777),
                ..FileAttrs::default()
            };
            let path = path.as_bytes();
            for request in [
                SftpRequest::Setstat { path, attrs },
                SftpRequest::Rename {
                    from: b"file",
                    to: path,
                },
                SftpRequest::Rename {
                    from: path,
                    to: b"away",
                },
                SftpRequest::Extended(ExtendedRequest::PosixRename {
                    from: b"file",
                    to: path,
                }),
                SftpRequest::Extended(ExtendedRequest::HardLink {
                    from: path,
                    to: b"again",
                }),
                SftpRequest::Extended(ExtendedRequest::LSetStat { path, attrs }),
            ] {
                if matches!(path, b"soft" | b"dangling")
                    && !matches!(request, SftpRequest::Setstat { .. })
                {
                    // The name of the link itself is not protected.
                    continue;
                }
                assert_ne!(talk.status(&request), SftpStatus::Ok, "{request:?}");
            }
        }
        let attrs = FileAttrs::default();
        for request in [
            SftpRequest::Rename {
                from: b"way",
                to: b"gone",
            },
            SftpRequest::Rename {
                from: b"real",
                to: b"gone",
            },
            SftpRequest::Rename {
                from: b"real/keys",
                to: b"gone",
            },
            SftpRequest::Rename {
                from: b"state",
                to: b"gone",
            },
            SftpRequest::Remove { path: b"way" },
            SftpRequest::Remove {
                path: b"real/keys/list",
            },
            SftpRequest::Rmdir {
                path: b"state/deep",
            },
            SftpRequest::Mkdir {
                path: b"later",
                attrs,
            },
            SftpRequest::Mkdir {
                path: b"state/more",
                attrs,
            },
            SftpRequest::Symlink {
                target: b"sub",
                link: b"later",
            },
            SftpRequest::Opendir { path: b"state" },
        ] {
            assert_eq!(
                talk.status(&request),
                SftpStatus::PermissionDenied,
                "{request:?}"
            );
        }
        let path = b"state/deep";
        assert_ne!(talk.status(&SftpRequest::Opendir { path }), SftpStatus::Ok);
        // Files beside them can be accessed, and directories on the way can be listed.
        for path in [&b"."[..], b"real", b"way/keys"] {
            let opened = talk.ask(&SftpRequest::Opendir { path });
            assert!(matches!(opened, SftpReply::Handle(_)), "{opened:?}");
        }
        assert_eq!(talk.read("file").as_deref(), Some(&b"0123456789"[..]));
        let handle = talk.handle("real/keys/other", NEW).unwrap();
        talk.done(&SftpRequest::Close {
            handle: &handle[..],
        });
        talk.done(&SftpRequest::Rename {
            from: b"real/keys/other",
            to: b"sub/other",
        });
        talk.done(&SftpRequest::Remove { path: b"sub/other" });
    }
    let kept = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    assert_eq!(
        kept("real/keys/list") + &kept("state/deep/secret"),
        "minemine"
    );
}

fn serve_on(
    input: &[u8],
    output: impl std::io::Write,
    options: &Options,
) -> Result<(), ServeError> {
    serve_blocking(input, output, FileTree::new(options)?)
}
