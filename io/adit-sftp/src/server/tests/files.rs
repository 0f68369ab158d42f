//! Files, names and directories; the same with and without a root.

use super::*;

#[test]
fn files_are_written_read_and_changed() {
    let place = Place::new();
    for mut talk in [place.open(), place.confined()] {
        let file = place.root().join("f");
        let handle = talk.handle("f", OpenFlags::READ.union(NEW)).unwrap();
        let handle = &handle[..];
        talk.done(&SftpRequest::Write {
            handle,
            offset: 5,
            data: b"world",
        });
        talk.done(&SftpRequest::Write {
            handle,
            offset: 0,
            data: b"hello",
        });
        let read = |offset, len| SftpRequest::Read {
            handle,
            offset,
            len,
        };
        assert_eq!(talk.ask(&read(3, 4)), SftpReply::Data(b"lowo"));
        assert_eq!(talk.status(&read(10, 4)), SftpStatus::Eof);
        assert_eq!(talk.status(&read(u64::MAX, 4)), SftpStatus::BadMessage);
        talk.done(&SftpRequest::Extended(ExtendedRequest::FSync { handle }));
        let attrs = FileAttrs {
            size: Some(4),
            permissions: Some(0o640),
            times: Some((1, 86_400)),
            owner: None,
        };
        talk.done(&SftpRequest::Fsetstat { handle, attrs });
        let SftpReply::Attrs(found) = talk.ask(&SftpRequest::Fstat { handle }) else {
            panic!()
        };
        assert_eq!((found.size, found.times), (Some(4), Some((1, 86_400))));
        assert_eq!(found.permissions, Some(0o100_640));
        let attrs = FileAttrs {
            size: Some(2),
            permissions: Some(0o600),
            times: Some((5, 6)),
            owner: found.owner,
        };
        talk.done(&SftpRequest::Setstat { path: b"f", attrs });
        let about = fs::metadata(&file).unwrap();
        assert_eq!(
            (about.len(), about.mtime(), about.mode()),
            (2, 6, 0o100_600)
        );
        assert_eq!(fs::read(&file).unwrap(), b"he");
        talk.done(&SftpRequest::Close { handle });
        // Appending ignores the offset.
        let handle = talk
            .handle("f", OpenFlags::WRITE.union(OpenFlags::APPEND))
            .unwrap();
        talk.done(&SftpRequest::Write {
            handle: &handle[..],
            offset: 0,
            data: b"!",
        });
        assert_eq!(fs::read(&file).unwrap(), b"he!");
        assert_eq!(talk.handle("f", NEW.union(OpenFlags::EXCLUSIVE)), None);
        assert_eq!(talk.handle("f\0g", OpenFlags::READ), None);
        assert_eq!(talk.handle("", OpenFlags::READ), None);
        let folder = talk.handle("sub", OpenFlags::READ).unwrap();
        assert_eq!(
            talk.status(&SftpRequest::Read {
                handle: &folder[..],
                offset: 0,
                len: 1
            }),
            SftpStatus::Failure
        );
        talk.done(&SftpRequest::Remove { path: b"f" });
    }
}

#[test]
fn names_are_made_moved_and_removed() {
    let place = Place::new();
    for mut talk in [place.open(), place.confined()] {
        let (from, to) = (&b"file"[..], &b"sub/there"[..]);
        fs::write(place.root().join("sub/there"), "old").unwrap();
        assert_eq!(
            talk.status(&SftpRequest::Rename { from, to }),
            SftpStatus::Failure,
            "it is there"
        );
        talk.done(&SftpRequest::Extended(ExtendedRequest::PosixRename {
            from,
            to,
        }));
        assert_eq!(
            fs::read(place.root().join("sub/there")).unwrap(),
            b"0123456789"
        );
        talk.done(&SftpRequest::Rename { from: to, to: from });
        talk.done(&SftpRequest::Symlink {
            target: b"nowhere",
            link: b"l",
        });
        assert_eq!(
            talk.path(&SftpRequest::Readlink { path: b"l" }).as_deref(),
            Some("nowhere")
        );
        assert_eq!(
            talk.kind(&SftpRequest::Lstat { path: b"l" }),
            Some(FileType::Symlink)
        );
        assert_eq!(
            talk.status(&SftpRequest::Stat { path: b"l" }),
            SftpStatus::NoSuchFile
        );
        let set = |attrs| SftpRequest::Extended(ExtendedRequest::LSetStat { path: b"l", attrs });
        talk.done(&set(FileAttrs {
            times: Some((3, 4)),
            ..FileAttrs::default()
        }));
        assert_eq!(
            fs::symlink_metadata(place.root().join("l"))
                .unwrap()
                .mtime(),
            4
        );
        let attrs = FileAttrs {
            permissions: Some(0o600),
            ..FileAttrs::default()
        };
        assert_eq!(talk.status(&set(attrs)), SftpStatus::Unsupported);
        talk.done(&SftpRequest::Extended(ExtendedRequest::LSetStat {
            path: b"file",
            attrs,
        }));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place.root().join("file")), 0o600);
        talk.done(&SftpRequest::Remove { path: b"l" });
        let attrs = FileAttrs {
            permissions: Some(0o700),
            ..FileAttrs::default()
        };
        talk.done(&SftpRequest::Mkdir { path: b"d/", attrs });
        assert_eq!(mode(&place.root().join("d")), 0o700);
        assert_ne!(
            talk.status(&SftpRequest::Remove { path: b"d" }),
            SftpStatus::Ok
        );
        talk.done(&SftpRequest::Rename {
            from: b"d",
            to: b"e",
        });
        talk.done(&SftpRequest::Rmdir { path: b"e" });
        assert_eq!(
            talk.status(&SftpRequest::Rmdir { path: b"e" }),
            SftpStatus::NoSuchFile
        );
        assert_eq!(
            talk.status(&SftpRequest::Opendir { path: b"file" }),
            SftpStatus::NoSuchFile
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
    let SftpReply::Handle(handle) = talk.ask(&SftpRequest::Opendir { path: b"sub" }) else {
        panic!()
    };
    let handle = handle.to_vec();
    let request = SftpRequest::Readdir {
        handle: &handle[..],
    };
    let (mut found, mut parts) = (Vec::new(), 0);
    loop {
        match talk.ask(&request) {
            SftpReply::Names(names) => {
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
            SftpReply::Status(reply) => {
                assert_eq!(reply.status, SftpStatus::Eof);
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
        SftpRequest::Extended(ExtendedRequest::CopyData {
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
        SftpStatus::Ok,
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
    let SftpReply::Extended(data) = talk.ask(&SftpRequest::Extended(ExtendedRequest::StatVfs {
        path: b"/",
    })) else {
        panic!()
    };
    let by_path = StatVfs::parse(data).unwrap();
    assert!(by_path.blocks > 0 && by_path.fragment > 0 && by_path.name_max > 0);
    let handle = talk.handle("file", OpenFlags::READ).unwrap();
    let handle = &handle[..];
    let SftpReply::Extended(data) =
        talk.ask(&SftpRequest::Extended(ExtendedRequest::FStatVfs { handle }))
    else {
        panic!()
    };
    assert_eq!(StatVfs::parse(data).unwrap().id, by_path.id);
    let users = OwnerIds::new(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xfe]).unwrap();
    let groups = OwnerIds::new(&[0, 0, 0, 0]).unwrap();
    let ask = SftpRequest::Extended(ExtendedRequest::UsersGroupsById { users, groups });
    let SftpReply::Extended(data) = talk.ask(&ask) else {
        panic!()
    };
    let [users, groups] = OwnerNames::parse_pair(data).unwrap();
    assert_eq!(users.iter().collect::<Vec<_>>(), [&b"root"[..], b""]);
    assert_eq!(groups.iter().count(), 1);
}
