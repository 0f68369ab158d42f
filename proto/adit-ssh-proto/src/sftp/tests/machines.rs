//! A client that transfers files to and from a server that answers in any order, and hostile peers.

use std::collections::VecDeque;

use adit_wire::Time;
use proptest::prelude::*;

use crate::error::SshError;
use crate::sftp::*;

/// Returns a client that is ready, for a server with these extensions.
fn ready<T: PartialEq>(
    extensions: ExtensionSet,
    server: &mut SftpServer<Vec<u8>>,
) -> SftpClient<T> {
    let (mut there, mut here) = (Vec::new(), Vec::new());
    *server = SftpServer::new(extensions);
    let mut client = SftpClient::new(&mut there);
    for _ in 0..3 {
        for frame in split(&std::mem::take(&mut there)) {
            assert_eq!(
                server.handle_input(&frame, &mut here),
                Ok(SftpServerStep::Answered)
            );
        }
        for frame in split(&std::mem::take(&mut here)) {
            if client.handle_input(&frame, &mut there) == Ok(SftpClientEvent::Ready) {
                return client;
            }
        }
    }
    panic!("never ready");
}

fn split(mut data: &[u8]) -> Vec<Vec<u8>> {
    let (mut frames, mut all) = (FrameReader::new(), Vec::new());
    while let Some(frame) = frames.next_frame(&mut data).unwrap() {
        all.push(frame.to_vec());
    }
    all
}

/// Files in memory: one open handle each.
fn serve(server: &mut SftpServer<Vec<u8>>, frame: &[u8], short: u32, out: &mut Vec<u8>) {
    let SftpServerStep::Execute(ticket, request) = server.handle_input(frame, out).unwrap() else {
        return;
    };
    match request {
        SftpRequest::Open { path, .. } => server.answer_opened(ticket, path.to_vec(), out),
        SftpRequest::Read {
            handle,
            offset,
            len,
        } => {
            let file = server.get(handle).unwrap();
            let start = usize::try_from(offset).unwrap().min(file.len());
            let rest = &file[start..];
            let fill = |room: &mut [u8]| {
                let n = rest.len().min(room.len());
                room[..n].copy_from_slice(&rest[..n]);
                Ok::<_, ()>(n)
            };
            ticket.answer_data(len.min(short), out, fill).unwrap();
        }
        SftpRequest::Write {
            handle,
            offset,
            data,
        } => {
            let file = server.get_mut(handle).unwrap();
            let start = usize::try_from(offset).unwrap();
            file.resize(file.len().max(start + data.len()), 0);
            file[start..start + data.len()].copy_from_slice(data);
            ticket.answer_status(SftpStatus::Ok, out);
        }
        SftpRequest::Close { handle } => {
            server.close(handle).unwrap();
            ticket.answer_status(SftpStatus::Ok, out);
        }
        other => panic!("{other:?}"),
    }
}

/// Opens a file whose content is `path`, and returns its handle.
fn open(client: &mut SftpClient<()>, server: &mut SftpServer<Vec<u8>>, path: &[u8]) -> Vec<u8> {
    let (mut there, mut here) = (Vec::new(), Vec::new());
    let request = SftpRequest::Open {
        path,
        flags: OpenFlags::READ,
        attrs: FileAttrs::default(),
    };
    client.send_request(&request, (), &mut there).unwrap();
    serve(server, &there[4..], u32::MAX, &mut here);
    match client.handle_input(&here[4..], &mut there) {
        Ok(SftpClientEvent::Reply {
            reply: SftpReply::Handle(handle),
            ..
        }) => handle.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Takes the frame that `pick` selects, to get an arbitrary order.
fn take(queue: &mut VecDeque<Vec<u8>>, pick: usize) -> Option<Vec<u8>> {
    let place = pick.checked_rem(queue.len())?;
    queue.remove(place)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn files_arrive_whole_in_any_order(
        content in proptest::collection::vec(any::<u8>(), 0..5000),
        chunk in 1u32..200,
        short in 1u32..250,
        start in 0usize..300,
        picks in proptest::collection::vec(any::<usize>(), 1..50),
        size_is_known: bool,
    ) {
        let mut server = SftpServer::new(ExtensionSet::ALL);
        let mut client = ready::<()>(ExtensionSet::ALL, &mut server);
        let handle = open(&mut client, &mut server, &content);
        let start = start.min(content.len());
        let size = size_is_known.then_some(content.len() as u64);
        let mut copy = content[..start].to_vec();
        let mut download = Download::new(&handle, start as u64, size, chunk);
        let (mut queue, mut out) = (VecDeque::new(), Vec::new());
        let mut picks = picks.iter().cycle();
        for step in 0..200_000u64 {
            let now = Time(step * 1000);
            download.send_requests(now, &mut client, &(), &mut out).unwrap();
            prop_assert!(download.in_flight() <= 1024);
            queue.extend(split(&std::mem::take(&mut out)));
            if download.is_done() {
                break;
            }
            let frame = take(&mut queue, *picks.next().unwrap()).unwrap();
            let mut answer = Vec::new();
            serve(&mut server, &frame, short, &mut answer);
            let SftpClientEvent::Reply { id, reply, .. } = client.handle_input(&answer[4..], &mut out).unwrap() else {
                panic!("no reply");
            };
            let before = download.received_to();
            if let DownloadedChunk::Data { offset, data } = download.handle_reply(now, id, &reply).unwrap() {
                let at = usize::try_from(offset).unwrap();
                copy.resize(copy.len().max(at + data.len()), 0);
                copy[at..at + data.len()].copy_from_slice(data);
            }
            prop_assert!(download.received_to() >= before);
            prop_assert_eq!(&copy[..usize::try_from(download.received_to()).unwrap().min(copy.len())],
                &content[..usize::try_from(download.received_to()).unwrap().min(copy.len())]);
        }
        prop_assert!(download.is_done());
        prop_assert_eq!(download.end(), Some(content.len() as u64));
        prop_assert_eq!(copy, content);
    }

    #[test]
    fn files_are_written_whole_in_any_order(
        content in proptest::collection::vec(any::<u8>(), 0..5000),
        chunk in 1u32..200,
        start in 0usize..300,
        picks in proptest::collection::vec(any::<usize>(), 1..50),
    ) {
        let mut server = SftpServer::new(ExtensionSet::default());
        let mut client = ready::<()>(ExtensionSet::default(), &mut server);
        let start = start.min(content.len());
        let handle = open(&mut client, &mut server, &content[..start]);
        let mut upload = Upload::new(&handle, start as u64, chunk);
        let (mut queue, mut out) = (VecDeque::new(), Vec::new());
        let mut picks = picks.iter().cycle();
        for step in 0..200_000u64 {
            let now = Time(step * 1000);
            while upload.wants_data() {
                upload.send_chunk::<_, SshError>(now, &mut client, (), &mut out, |offset, room| {
                    let rest = &content[usize::try_from(offset).unwrap()..];
                    let n = rest.len().min(room.len());
                    room[..n].copy_from_slice(&rest[..n]);
                    Ok(n)
                }).unwrap();
            }
            queue.extend(split(&std::mem::take(&mut out)));
            if upload.is_done() {
                break;
            }
            let frame = take(&mut queue, *picks.next().unwrap()).unwrap();
            let mut answer = Vec::new();
            serve(&mut server, &frame, u32::MAX, &mut answer);
            let SftpClientEvent::Reply { id, reply, .. } = client.handle_input(&answer[4..], &mut out).unwrap() else {
                panic!("no reply");
            };
            upload.handle_reply(now, id, &reply).unwrap();
        }
        prop_assert!(upload.is_done());
        prop_assert_eq!(upload.written_to(), content.len() as u64);
        let mut out = Vec::new();
        client.send_request(&SftpRequest::Close { handle: &handle[..] }, (), &mut out).unwrap();
        let SftpServerStep::Execute(ticket, SftpRequest::Close { handle }) = server.handle_input(&out[4..], &mut Vec::new()).unwrap() else {
            panic!("no close");
        };
        ticket.answer_status(SftpStatus::Ok, &mut Vec::new());
        prop_assert_eq!(server.close(handle).unwrap(), content);
        prop_assert_eq!(server.open_handles(), 0);
    }
}

#[test]
fn the_limits_are_asked_before_anything_else() {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let client = ready::<()>(ExtensionSet::ALL, &mut server);
    assert_eq!(client.limits().read_chunk(), MAX_DATA);
    let client = ready::<()>(ExtensionSet::default(), &mut server);
    assert_eq!(client.limits().read_chunk(), USUAL_DATA);
    let mut early = SftpClient::<()>::new(&mut Vec::new());
    let request = SftpRequest::Stat { path: b"x" };
    assert!(early.send_request(&request, (), &mut Vec::new()).is_err());
}

#[test]
fn a_reply_that_nobody_asked_for_breaks_the_channel() {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let mut client = ready::<u8>(ExtensionSet::ALL, &mut server);
    let reply = |id: RequestId, reply: SftpReply<'_>| {
        let mut out = Vec::new();
        // The number is only visible through Debug, since it is not public.
        let id: String = format!("{id:?}")
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        reply.encode(id.parse().unwrap(), &mut out);
        out.split_off(4)
    };
    let request = SftpRequest::Stat { path: b"x" };
    let ok = SftpReply::Status(StatusReply {
        status: SftpStatus::Ok,
        message: b"",
    });
    let id = client.send_request(&request, 5, &mut Vec::new()).unwrap();
    let attrs = reply(id, SftpReply::Attrs(FileAttrs::default()));
    assert!(matches!(
        client.handle_input(&attrs, &mut Vec::new()),
        Ok(SftpClientEvent::Reply { tag: 5, .. })
    ));
    assert!(
        client.handle_input(&attrs, &mut Vec::new()).is_err(),
        "twice"
    );
    let next = client.send_request(&request, 6, &mut Vec::new()).unwrap();
    assert_ne!(next, id);
    assert!(
        client.handle_input(&attrs, &mut Vec::new()).is_err(),
        "the old one"
    );
    assert!(
        client
            .handle_input(&reply(next, ok), &mut Vec::new())
            .is_err(),
        "done, but nothing given"
    );
    for _ in 0..4096 {
        client.send_request(&request, 7, &mut Vec::new()).unwrap();
    }
    assert!(!client.can_request());
    assert!(client.send_request(&request, 7, &mut Vec::new()).is_err());
}

#[test]
fn handles_are_counted_and_never_taken_for_others() {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let mut client = ready::<()>(ExtensionSet::ALL, &mut server);
    let handles: Vec<_> = (0..MAX_HANDLES)
        .map(|_| open(&mut client, &mut server, b"x"))
        .collect();
    let (mut there, mut here) = (Vec::new(), Vec::new());
    let request = SftpRequest::Opendir { path: b"x" };
    client.send_request(&request, (), &mut there).unwrap();
    assert_eq!(
        server.handle_input(&there[4..], &mut here),
        Ok(SftpServerStep::Answered)
    );
    assert!(String::from_utf8_lossy(&here).contains("Too many open files"));
    let close = SftpRequest::Close {
        handle: &handles[9][..],
    };
    for expected in [SftpStatus::Ok, SftpStatus::Failure] {
        (there, here) = (Vec::new(), Vec::new());
        client.send_request(&close, (), &mut there).unwrap();
        serve(&mut server, &there[4..], 0, &mut here);
        let (_, SftpReply::Status(reply)) = SftpReply::parse(&here[4..]).unwrap() else {
            panic!("no status");
        };
        assert_eq!(reply.status, expected);
    }
    let again = open(&mut client, &mut server, b"y");
    assert!(
        !handles.contains(&again),
        "its place is the same, it is not"
    );
}

/// A server has to buffer as much as a client requests.
#[test]
fn reads_are_clamped() {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let mut client = ready::<()>(ExtensionSet::ALL, &mut server);
    let handle = open(&mut client, &mut server, b"file");
    for (wanted, given) in [(1, 1), (MAX_DATA, MAX_DATA), (u32::MAX, MAX_DATA)] {
        let (mut there, mut here) = (Vec::new(), Vec::new());
        let request = SftpRequest::Read {
            handle: &handle[..],
            offset: 0,
            len: wanted,
        };
        client.send_request(&request, (), &mut there).unwrap();
        let SftpServerStep::Execute(_, SftpRequest::Read { len, .. }) =
            server.handle_input(&there[4..], &mut here).unwrap()
        else {
            panic!("{here:?}");
        };
        assert_eq!(len, given);
        assert!(here.is_empty());
    }
}

/// The slot of a handle is reused with another number: a closed handle closes nothing else, even if
/// the driver has kept it.
#[test]
fn a_stale_handle_closes_nothing() {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let mut client = ready::<()>(ExtensionSet::ALL, &mut server);
    let close = |client: &mut SftpClient<()>, server: &mut SftpServer<Vec<u8>>, handle: &[u8]| {
        let (mut there, mut here) = (Vec::new(), Vec::new());
        client
            .send_request(&SftpRequest::Close { handle }, (), &mut there)
            .unwrap();
        match server.handle_input(&there[4..], &mut here).unwrap() {
            SftpServerStep::Execute(_, SftpRequest::Close { handle }) => Some(handle),
            _ => None,
        }
    };
    let first = open(&mut client, &mut server, b"first");
    let stale = close(&mut client, &mut server, &first).unwrap();
    assert_eq!(server.close(stale).as_deref(), Some(&b"first"[..]));
    let second = open(&mut client, &mut server, b"second");
    assert_eq!(first[..4], second[..4], "the same slot");
    assert_eq!(server.close(stale), None);
    assert_eq!(close(&mut client, &mut server, &first), None);
    assert_eq!(server.open_handles(), 1);
    let id = close(&mut client, &mut server, &second).unwrap();
    assert_eq!(server.close(id).as_deref(), Some(&b"second"[..]));
}

#[test]
fn what_is_not_known_is_refused_and_the_channel_lives() {
    let mut server = SftpServer::<()>::new(ExtensionSet::ALL.without(Extension::CopyData));
    let mut out = Vec::new();
    assert!(
        server.handle_input(&[3, 0, 0, 0, 1], &mut out).is_err(),
        "no INIT"
    );
    assert!(
        server.handle_input(&[1, 0, 0, 0, 2], &mut out).is_err(),
        "too old"
    );
    assert!(server.handle_input(&[1, 0, 0, 0, 6], &mut out).is_ok());
    let mut vendor = Vec::new();
    let name = b"no@such";
    SftpRequest::Extended(ExtendedRequest::Unknown { name }).encode(9, &mut vendor);
    for frame in [&[77, 0, 0, 0, 9][..], &vendor[4..]] {
        out.clear();
        assert_eq!(
            server.handle_input(frame, &mut out),
            Ok(SftpServerStep::Answered)
        );
        let (id, SftpReply::Status(reply)) = SftpReply::parse(&out[4..]).unwrap() else {
            panic!("no status");
        };
        assert_eq!((id, reply.status), (9, SftpStatus::Unsupported));
    }
    let read = SftpRequest::Read {
        handle: &b"12345678"[..],
        offset: 0,
        len: u32::MAX,
    };
    let mut frame = Vec::new();
    read.encode(1, &mut frame);
    out.clear();
    assert_eq!(
        server.handle_input(&frame[4..], &mut out),
        Ok(SftpServerStep::Answered)
    );
    assert!(String::from_utf8_lossy(&out).contains("No such handle"));
}

#[test]
fn a_transfer_that_fails_says_where_it_can_go_on() {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let mut client = ready::<()>(ExtensionSet::ALL, &mut server);
    let (now, mut out) = (Time(0), Vec::new());
    let mut upload = Upload::new(b"h", 100, 10);
    for _ in 0..3 {
        upload
            .send_chunk::<_, SshError>(now, &mut client, (), &mut out, |_, room| Ok(room.len()))
            .unwrap();
    }
    let frames = split(&out);
    let status = |frame: &[u8], status| {
        let (id, _) = SftpRequest::parse(frame).unwrap();
        let mut out = Vec::new();
        ReplyTicket(id).answer_status_with(status, "disk full", &mut out);
        out.split_off(4)
    };
    for (n, code, written) in [
        (2, SftpStatus::Ok, 100),
        (0, SftpStatus::Ok, 110),
        (1, SftpStatus::Failure, 110),
    ] {
        let frame = status(&frames[n], code);
        let Ok(SftpClientEvent::Reply { id, reply, .. }) = client.handle_input(&frame, &mut out)
        else {
            panic!("no reply");
        };
        let taken = upload.handle_reply(now, id, &reply);
        assert_eq!(taken.is_ok(), code == SftpStatus::Ok);
        if let Err(why) = taken {
            assert_eq!(why.to_string(), "Failure: disk full");
        }
        assert_eq!(upload.written_to(), written);
    }
    assert!(!upload.wants_data() && !upload.is_done());
}

#[test]
fn a_download_that_fails_is_missing_what_failed() {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let mut client = ready::<()>(ExtensionSet::ALL, &mut server);
    let (now, mut out) = (Time(0), Vec::new());
    let mut download = Download::new(b"h", 5, Some(35), 10);
    download
        .send_requests(now, &mut client, &(), &mut out)
        .unwrap();
    let requests = split(&out);
    let mut told = Vec::new();
    for (n, data) in [
        (0, Some(b"0123456789")),
        (1, None),
        (2, Some(b"0123456789")),
    ] {
        let (id, _) = SftpRequest::parse(&requests[n]).unwrap();
        let mut frame = Vec::new();
        match data {
            Some(data) => SftpReply::Data(data).encode(id, &mut frame),
            None => {
                ReplyTicket(id).answer_status_with(SftpStatus::Failure, "broken disk", &mut frame);
            }
        }
        let Ok(SftpClientEvent::Reply { id, reply, .. }) =
            client.handle_input(&frame[4..], &mut out)
        else {
            panic!("no reply");
        };
        told.push((
            download.handle_reply(now, id, &reply).is_ok(),
            download.received_to(),
        ));
    }
    assert_eq!(told, [(true, 15), (false, 15), (true, 15)]);
    assert!(!download.is_done() && download.in_flight() == 0);
}

#[test]
fn a_server_that_gives_more_than_was_asked_for_is_found_out() {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let mut client = ready::<()>(ExtensionSet::ALL, &mut server);
    for data in [&b"12345"[..], b""] {
        let (now, mut out) = (Time(0), Vec::new());
        let mut download = Download::new(b"h", 0, Some(4), 4);
        download
            .send_requests(now, &mut client, &(), &mut out)
            .unwrap();
        assert_eq!(download.in_flight(), 1, "the end is asked for later");
        let (id, _) = SftpRequest::parse(&out[4..]).unwrap();
        let mut frame = Vec::new();
        SftpReply::Data(data).encode(id, &mut frame);
        let Ok(SftpClientEvent::Reply { id, reply, .. }) =
            client.handle_input(&frame[4..], &mut out)
        else {
            panic!("no reply");
        };
        assert!(download.handle_reply(now, id, &reply).is_err());
    }
}
