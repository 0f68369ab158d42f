//! Every message is parsed as it was written; no input panics.

use proptest::prelude::*;

use crate::sftp::*;
use crate::wire::SshBufMut;

fn requests<'a>(
    a: &'a [u8],
    b: &'a [u8],
    offset: u64,
    len: u32,
    attrs: FileAttrs,
) -> Vec<SftpRequest<'a>> {
    let flags = OpenFlags(len);
    let ids = b.get(..b.len() / 4 * 4).and_then(OwnerIds::new).unwrap();
    let mut all = vec![
        SftpRequest::Open {
            path: a,
            flags,
            attrs,
        },
        SftpRequest::Close { handle: a },
        SftpRequest::Read {
            handle: a,
            offset,
            len,
        },
        SftpRequest::Write {
            handle: a,
            offset,
            data: b,
        },
        SftpRequest::Lstat { path: a },
        SftpRequest::Fstat { handle: a },
        SftpRequest::Setstat { path: a, attrs },
        SftpRequest::Fsetstat { handle: a, attrs },
        SftpRequest::Opendir { path: a },
        SftpRequest::Readdir { handle: a },
        SftpRequest::Remove { path: a },
        SftpRequest::Mkdir { path: a, attrs },
        SftpRequest::Rmdir { path: a },
        SftpRequest::Realpath { path: a },
        SftpRequest::Stat { path: a },
        SftpRequest::Rename { from: a, to: b },
        SftpRequest::Readlink { path: a },
        SftpRequest::Symlink { target: a, link: b },
        SftpRequest::Unknown { number: 99 },
    ];
    all.extend(
        [
            ExtendedRequest::PosixRename { from: a, to: b },
            ExtendedRequest::StatVfs { path: a },
            ExtendedRequest::FStatVfs { handle: a },
            ExtendedRequest::HardLink { from: a, to: b },
            ExtendedRequest::FSync { handle: a },
            ExtendedRequest::LSetStat { path: a, attrs },
            ExtendedRequest::Limits,
            ExtendedRequest::ExpandPath { path: a },
            ExtendedRequest::CopyData {
                from: a,
                from_offset: offset,
                len: u64::from(len),
                to: b,
                to_offset: 7,
            },
            ExtendedRequest::HomeDirectory { user: a },
            ExtendedRequest::UsersGroupsById {
                users: ids,
                groups: OwnerIds::default(),
            },
            ExtendedRequest::Unknown { name: b"no@such" },
        ]
        .map(SftpRequest::Extended),
    );
    all
}

proptest! {
    #[test]
    fn what_is_put_is_read(a: Vec<u8>, b: Vec<u8>, offset: u64, len: u32, id: u32, owner: Option<(u32, u32)>) {
        let attrs = FileAttrs { size: Some(offset), owner, ..FileAttrs::default() };
        for request in requests(&a, &b, offset, len, attrs) {
            let mut out = Vec::new();
            request.encode(id, &mut out);
            let mut data = &out[..];
            let mut frames = FrameReader::new();
            let frame = frames.next_frame(&mut data).unwrap().unwrap();
            prop_assert_eq!(SftpRequest::parse(frame), Ok((id, request)));
            for cut in 0..frame.len() {
                // A truncated message is malformed, or only its last optional field is missing.
                let _ = SftpRequest::parse(&frame[..cut]);
            }
        }
        let a = a.get(..256).unwrap_or(&a);
        let mut names = Vec::new();
        let mut answer = ReplyTicket(id).begin_names(&mut names);
        answer.push(&FileEntry { name: a, line: &b, attrs });
        answer.push(&FileEntry { name: &b, line: a, attrs });
        answer.finish();
        let (_, SftpReply::Names(list)) = SftpReply::parse(&names[4..]).unwrap() else {
            panic!("no names");
        };
        let found: Vec<_> = list.iter().map(|name| (name.name, name.line, name.attrs)).collect();
        prop_assert_eq!(found, [(a, &b[..], attrs), (&b[..], a, attrs)]);
        let status = StatusReply { status: SftpStatus::from_code(len), message: &b };
        for reply in [
            SftpReply::Status(status), SftpReply::Handle(a), SftpReply::Data(&b), SftpReply::Names(list),
            SftpReply::Attrs(attrs), SftpReply::Extended(&b),
        ] {
            let mut out = Vec::new();
            reply.encode(id, &mut out);
            prop_assert_eq!(SftpReply::parse(&out[4..]), Ok((id, reply)));
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, kind in 0u8..=210) {
        let mut frame = vec![kind];
        frame.extend_from_slice(&bytes);
        if let Ok((id, request)) = SftpRequest::parse(&frame) {
            let mut out = Vec::new();
            request.encode(id, &mut out);
            prop_assert_eq!(SftpRequest::parse(&out[4..]), Ok((id, request)));
        }
        let _ = SftpReply::parse(&frame);
        let _ = SftpClient::<()>::new(&mut Vec::new()).handle_input(&frame, &mut Vec::new());
        let _ = SftpServer::<()>::new(ExtensionSet::ALL).handle_input(&frame, &mut Vec::new());
    }
}

#[test]
fn counts_are_not_believed() {
    let mut frame = vec![104, 0, 0, 0, 1];
    frame.put_u32(u32::MAX);
    assert!(SftpReply::parse(&frame).is_err());
    let mut frame = vec![102, 0, 0, 0, 1];
    frame.put_string(&[0; 257]);
    assert!(
        SftpReply::parse(&frame).is_err(),
        "a handle that is too long"
    );
}

#[test]
fn names_of_users_come_in_pairs_of_lists() {
    let mut out = Vec::new();
    let (users, groups) = (["root", ""], ["wheel"]);
    ReplyTicket(1).answer_users_groups(users.iter(), groups.iter(), &mut out);
    let (_, SftpReply::Extended(data)) = SftpReply::parse(&out[4..]).unwrap() else {
        panic!("another reply");
    };
    let [users, groups] = OwnerNames::parse_pair(data).unwrap();
    assert_eq!(users.iter().collect::<Vec<_>>(), [&b"root"[..], b""]);
    assert_eq!(groups.iter().collect::<Vec<_>>(), [b"wheel"]);
    assert!(OwnerNames::parse_pair(&data[..data.len() - 1]).is_err());
}
