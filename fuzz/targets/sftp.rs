//! SFTP: arbitrary messages, a server between arbitrary requests, a client and its transfers
//! between arbitrary replies. Memory is bounded, and splitting changes nothing.

#![no_main]

use adit_fuzz::{ActionScript, SplitInput};
use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{
    Download, DownloadedChunk, ExtensionSet, FrameReader, HandleId, MAX_HANDLES, OwnerNames,
    SftpClient, SftpClientEvent, SftpLimits, SftpReply, SftpRequest, SftpServer, SftpServerStep,
    SftpStatus, StatVfs, Upload,
};
use adit_wire::Time;
use libfuzzer_sys::fuzz_target;

type FrameSplit = Result<(Vec<Vec<u8>>, bool), SshError>;

fn split_frames(wire: &[u8], pieces: &[usize]) -> FrameSplit {
    let (mut frames, mut found, mut rest) = (FrameReader::new(), Vec::new(), wire);
    for piece in pieces.iter().cycle() {
        let (mut now, later) = rest.split_at(rest.len().min(*piece));
        while let Some(frame) = frames.next_frame(&mut now)? {
            found.push(frame.to_vec());
        }
        assert!(now.is_empty());
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    Ok((found, frames.at_boundary()))
}

/// Checks that a parsed message is encoded so that it parses the same.
fn check_messages(frame: &[u8]) {
    let mut out = Vec::new();
    if let Ok((id, request)) = SftpRequest::parse(frame) {
        request.encode(id, &mut out);
        assert_eq!(SftpRequest::parse(&out[4..]), Ok((id, request)));
    }
    out.clear();
    if let Ok((id, reply)) = SftpReply::parse(frame) {
        reply.encode(id, &mut out);
        assert_eq!(SftpReply::parse(&out[4..]), Ok((id, reply)));
        match reply {
            SftpReply::Names(names) => {
                assert_eq!(names.iter().count(), names.len() as usize);
            }
            SftpReply::Extended(data) => {
                let _ = StatVfs::parse(data);
                if let Ok(limits) = SftpLimits::parse(data) {
                    assert!((1..=261_120).contains(&limits.read_chunk()));
                }
                if let Ok(pair) = OwnerNames::parse_pair(data) {
                    let count: usize = pair.iter().map(|list| list.iter().count()).sum();
                    assert!(count <= data.len() / 4);
                }
            }
            _ => {}
        }
    }
}

fn check_server(frames: &[Vec<u8>]) {
    let mut server = SftpServer::new(ExtensionSet::ALL);
    let mut out = Vec::new();
    for frame in frames {
        let before = out.len();
        let Ok(step) = server.handle_input(frame, &mut out) else {
            return;
        };
        let SftpServerStep::Execute(ticket, request) = step else {
            assert!(out.len() > before, "a request was not answered");
            continue;
        };
        match request {
            SftpRequest::Open { path, .. } | SftpRequest::Opendir { path } => {
                server.answer_opened(ticket, path.len(), &mut out);
            }
            SftpRequest::Close { handle } => {
                assert!(
                    server.close(handle).is_some(),
                    "the closed handle was not open"
                );
                assert!(server.get(handle).is_none() && server.close(handle).is_none());
                ticket.answer_status(SftpStatus::Ok, &mut out);
            }
            SftpRequest::Read { handle, len, .. } => {
                assert!(server.get_mut(handle).is_some() && len <= 261_120);
                let fill = |room: &mut [u8]| Ok::<_, SshError>(room.len() / 3);
                drop(ticket.answer_data(len, &mut out, fill));
            }
            SftpRequest::Readdir { handle } => {
                let _: HandleId = handle;
                ticket.begin_names(&mut out).finish();
            }
            _ => ticket.answer_status_with(SftpStatus::Failure, "no", &mut out),
        }
        assert!(server.open_handles() <= MAX_HANDLES);
        // A client of ours can parse every answer.
        let mut data = &out[before..];
        let frame = FrameReader::new()
            .next_frame(&mut data)
            .map(|frame| frame.map(<[u8]>::to_vec));
        assert!(data.is_empty());
        let frame = frame.expect("within bounds").expect("whole");
        SftpReply::parse(&frame).expect("what we write we read");
        if out.len() > 1 << 20 {
            out.clear();
        }
    }
}

fn check_client(script: &mut ActionScript<'_>, frames: &[Vec<u8>]) {
    let mut out = Vec::new();
    let mut client = SftpClient::new(&mut out);
    let size = script.read_flag().then(|| u64::from(script.read_u16()));
    let mut download = Download::new(b"h", u64::from(script.read_u8()), size, script.read_u32());
    let mut upload = Upload::new(b"g", 0, u32::from(script.read_u16()));
    for (n, frame) in frames.iter().enumerate() {
        out.clear();
        let now = Time(n as u64 * 1000);
        match client.handle_input(frame, &mut out) {
            Err(_) => return,
            Ok(SftpClientEvent::Waiting | SftpClientEvent::Ready) => {}
            Ok(SftpClientEvent::Reply { tag, id, reply }) => {
                if tag {
                    let (before, end) = (download.received_to(), download.end());
                    match download.handle_reply(now, id, &reply) {
                        Ok(DownloadedChunk::Data { data, .. }) => assert!(!data.is_empty()),
                        Ok(DownloadedChunk::Nothing) | Err(_) => {}
                    }
                    assert!(download.received_to() >= before || download.end() != end);
                } else if upload.handle_reply(now, id, &reply).is_ok() {
                    assert!(!upload.is_done() || upload.in_flight() == 0);
                }
            }
        }
        if !client.can_request() {
            continue;
        }
        download
            .send_requests(now, &mut client, &true, &mut out)
            .expect("there is room");
        if upload.wants_data() {
            let wrote =
                upload.send_chunk::<_, SshError>(now, &mut client, false, &mut out, |_, room| {
                    Ok(room.len().min(9))
                });
            assert!(wrote.is_ok());
        }
        assert!(download.in_flight() + upload.in_flight() <= 2048);
        assert_eq!(
            client.in_flight(),
            download.in_flight() + upload.in_flight()
        );
    }
}

fuzz_target!(|input: &[u8]| {
    let mut script = ActionScript::new(input);
    match script.read_u8() % 4 {
        0 => check_messages(script.take_rest()),
        1 => {
            let pieces = SplitInput::new(script.take_rest());
            let _ = pieces.assert_split_independent(split_frames);
        }
        2 => {
            let mut frames = vec![vec![1, 0, 0, 0, 3]];
            while !script.is_empty() {
                frames.push(script.read_bytes().to_vec());
            }
            check_server(&frames);
        }
        _ => {
            let mut frames = vec![vec![2, 0, 0, 0, 3]];
            let mut plan = ActionScript::new(script.read_bytes());
            // The kind of each reply, and a small number, like those of requests.
            while !script.is_empty() {
                let kind = script.read_u8();
                let mut frame = vec![kind, 0, 0, script.read_u8(), script.read_u8()];
                frame.extend_from_slice(script.read_bytes());
                frames.push(frame);
            }
            check_client(&mut plan, &frames);
        }
    }
});
