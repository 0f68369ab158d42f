//! A recorded session of OpenSSH with itself; see `vectors/sftp/README.md`.

use crate::sftp::*;

fn frames(side: &str) -> Vec<Vec<u8>> {
    let text = include_str!("../../../vectors/sftp/sftp.json");
    let all: serde_json::Value = serde_json::from_str(text).unwrap();
    let lines = all[side].as_array().unwrap();
    let hex: String = lines.iter().map(|line| line.as_str().unwrap()).collect();
    let bytes: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
        .collect();
    let (mut data, mut found) = (&bytes[..], Vec::new());
    while let Some(frame) = FrameReader::new().next_frame(&mut data).unwrap() {
        found.push(frame.to_vec());
    }
    assert!(data.is_empty());
    found
}

#[test]
fn what_the_client_sent_is_read_and_written_the_same() {
    let frames = frames("client");
    let (first, rest) = frames.split_first().unwrap();
    let mut ours = Vec::new();
    let _ = SftpClient::<()>::new(&mut ours);
    assert_eq!(first[..], ours[4..]);
    let (mut extensions, mut others) = (0, 0);
    for frame in rest {
        let (id, request) = SftpRequest::parse(frame).unwrap();
        match &request {
            SftpRequest::Extended(ExtendedRequest::Unknown { .. })
            | SftpRequest::Unknown { .. } => {
                panic!("{request:?}")
            }
            SftpRequest::Extended(_) => extensions += 1,
            _ => others += 1,
        }
        let mut ours = Vec::new();
        request.encode(id, &mut ours);
        assert_eq!(ours[4..], frame[..], "{request:?}");
    }
    assert_eq!((extensions, others), (9, 47));
}

#[test]
fn what_the_server_sent_is_read_and_written_the_same() {
    let frames = frames("server");
    let (first, rest) = frames.split_first().unwrap();
    let mut client = SftpClient::<()>::new(&mut Vec::new());
    let mut out = Vec::new();
    assert_eq!(
        client.handle_input(first, &mut out),
        Ok(SftpClientEvent::Waiting)
    );
    assert_eq!(client.extensions(), ExtensionSet::ALL);
    let (_, SftpRequest::Extended(ExtendedRequest::Limits)) =
        SftpRequest::parse(&out[4..]).unwrap()
    else {
        panic!("the limits are not asked");
    };
    let mut kinds = [0; 6];
    for frame in rest {
        let (id, reply) = SftpReply::parse(frame).unwrap();
        let kind = match &reply {
            SftpReply::Status(_) => 0,
            SftpReply::Handle(_) => 1,
            SftpReply::Data(data) => {
                assert!(b"hello, world\n".ends_with(data));
                2
            }
            SftpReply::Names(names) => {
                assert_eq!(names.iter().count(), usize::try_from(names.len()).unwrap());
                3
            }
            SftpReply::Attrs(attrs) => {
                assert!(attrs.file_kind().is_some());
                4
            }
            SftpReply::Extended(_) => 5,
        };
        kinds[kind] += 1;
        let mut ours = Vec::new();
        reply.encode(id, &mut ours);
        assert_eq!(ours[4..], frame[..], "{reply:?}");
    }
    assert_eq!(kinds, [27, 7, 2, 4, 12, 4]);
    let limits = rest.iter().find_map(|frame| match SftpReply::parse(frame) {
        Ok((_, SftpReply::Extended(data))) => SftpLimits::parse(data).ok(),
        _ => None,
    });
    assert_eq!(limits.unwrap().read_chunk(), MAX_DATA);
}
