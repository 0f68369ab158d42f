//! Every message is parsed as it was written; no input panics.

use proptest::prelude::*;

use crate::sftp::*;
use crate::wire::Put;

fn requests<'a>(a: &'a [u8], b: &'a [u8], offset: u64, len: u32, attrs: Attrs) -> Vec<Request<'a>> {
    let flags = OpenFlags(len);
    let ids = b.get(..b.len() / 4 * 4).and_then(Ids::new).unwrap();
    let mut all = vec![
        Request::Open {
            path: a,
            flags,
            attrs,
        },
        Request::Close { handle: a },
        Request::Read {
            handle: a,
            offset,
            len,
        },
        Request::Write {
            handle: a,
            offset,
            data: b,
        },
        Request::Lstat { path: a },
        Request::Fstat { handle: a },
        Request::Setstat { path: a, attrs },
        Request::Fsetstat { handle: a, attrs },
        Request::Opendir { path: a },
        Request::Readdir { handle: a },
        Request::Remove { path: a },
        Request::Mkdir { path: a, attrs },
        Request::Rmdir { path: a },
        Request::Realpath { path: a },
        Request::Stat { path: a },
        Request::Rename { from: a, to: b },
        Request::Readlink { path: a },
        Request::Symlink { target: a, link: b },
        Request::Unknown { number: 99 },
    ];
    all.extend(
        [
            Extended::PosixRename { from: a, to: b },
            Extended::StatVfs { path: a },
            Extended::FStatVfs { handle: a },
            Extended::HardLink { from: a, to: b },
            Extended::FSync { handle: a },
            Extended::LSetStat { path: a, attrs },
            Extended::Limits,
            Extended::ExpandPath { path: a },
            Extended::CopyData {
                from: a,
                from_offset: offset,
                len: u64::from(len),
                to: b,
                to_offset: 7,
            },
            Extended::HomeDirectory { user: a },
            Extended::UsersGroupsById {
                users: ids,
                groups: Ids::default(),
            },
            Extended::Unknown { name: b"no@such" },
        ]
        .map(Request::Extended),
    );
    all
}

proptest! {
    #[test]
    fn what_is_put_is_read(a: Vec<u8>, b: Vec<u8>, offset: u64, len: u32, id: u32, owner: Option<(u32, u32)>) {
        let attrs = Attrs { size: Some(offset), owner, ..Attrs::default() };
        for request in requests(&a, &b, offset, len, attrs) {
            let mut out = Vec::new();
            request.put(id, &mut out);
            let mut data = &out[..];
            let mut frames = Frames::new();
            let frame = frames.next(&mut data).unwrap().unwrap();
            prop_assert_eq!(Request::parse(frame), Ok((id, request)));
            for cut in 0..frame.len() {
                // A truncated message is malformed, or only its last optional field is missing.
                let _ = Request::parse(&frame[..cut]);
            }
        }
        let a = a.get(..256).unwrap_or(&a);
        let mut names = Vec::new();
        let mut answer = Ticket(id).names(&mut names);
        answer.push(&Name { name: a, line: &b, attrs });
        answer.push(&Name { name: &b, line: a, attrs });
        answer.end();
        let (_, Reply::Names(list)) = Reply::parse(&names[4..]).unwrap() else {
            panic!("no names");
        };
        let found: Vec<_> = list.iter().map(|name| (name.name, name.line, name.attrs)).collect();
        prop_assert_eq!(found, [(a, &b[..], attrs), (&b[..], a, attrs)]);
        let status = StatusReply { status: Status::from_code(len), message: &b };
        for reply in [
            Reply::Status(status), Reply::Handle(a), Reply::Data(&b), Reply::Names(list),
            Reply::Attrs(attrs), Reply::Extended(&b),
        ] {
            let mut out = Vec::new();
            reply.put(id, &mut out);
            prop_assert_eq!(Reply::parse(&out[4..]), Ok((id, reply)));
        }
    }

    #[test]
    fn no_bytes_panic(bytes: Vec<u8>, kind in 0u8..=210) {
        let mut frame = vec![kind];
        frame.extend_from_slice(&bytes);
        if let Ok((id, request)) = Request::parse(&frame) {
            let mut out = Vec::new();
            request.put(id, &mut out);
            prop_assert_eq!(Request::parse(&out[4..]), Ok((id, request)));
        }
        let _ = Reply::parse(&frame);
        let _ = Client::<()>::new(&mut Vec::new()).handle_input(&frame, &mut Vec::new());
        let _ = Server::<()>::new(Extensions::ALL).handle_input(&frame, &mut Vec::new());
    }
}

#[test]
fn counts_are_not_believed() {
    let mut frame = vec![104, 0, 0, 0, 1];
    frame.put_u32(u32::MAX);
    assert!(Reply::parse(&frame).is_err());
    let mut frame = vec![102, 0, 0, 0, 1];
    frame.put_string(&[0; 257]);
    assert!(Reply::parse(&frame).is_err(), "a handle that is too long");
}

#[test]
fn names_of_users_come_in_pairs_of_lists() {
    let mut out = Vec::new();
    let (users, groups) = (["root", ""], ["wheel"]);
    Ticket(1).users_groups(users.iter(), groups.iter(), &mut out);
    let (_, Reply::Extended(data)) = Reply::parse(&out[4..]).unwrap() else {
        panic!("another reply");
    };
    let [users, groups] = Texts::parse_pair(data).unwrap();
    assert_eq!(users.iter().collect::<Vec<_>>(), [&b"root"[..], b""]);
    assert_eq!(groups.iter().collect::<Vec<_>>(), [b"wheel"]);
    assert!(Texts::parse_pair(&data[..data.len() - 1]).is_err());
}
