//! Wire formats: hand-made from the RFC, and round trips.

use adit_crypto::Secret;
use proptest::prelude::*;

use super::*;

/// CHANNEL_OPEN of `direct-tcpip`, field by field (RFC 4254 sections 5.1 and 7.2).
#[test]
fn direct_tcpip_by_hand() {
    let mut client = client();
    client
        .open_channel(&ChannelKind::DirectTcpip {
            host: "a.example".into(),
            port: 8080,
            originator: Originator {
                address: "192.0.2.1".into(),
                port: 5000,
            },
        })
        .unwrap();
    let wire = [
        &b"\x5a\0\0\0\x0cdirect-tcpip"[..],
        b"\0\0\0\0\0\x20\0\0\0\0\x80\0",
        b"\0\0\0\x09a.example\0\0\x1f\x90",
        b"\0\0\0\x09192.0.2.1\0\0\x13\x88",
    ];
    assert_eq!(output(&mut client), [wire.concat()]);
}

/// `pty-req`, `exec` and `exit-status` (sections 6.2, 6.5 and 6.10).
#[test]
fn requests_by_hand() {
    let (mut client, mut server) = (client(), server());
    let (here, there) = session(&mut client, &mut server);
    let mut modes = TerminalModes::new();
    modes.set(53, 1);
    modes.set(129, 38400);
    modes.set(0, 7);
    modes.set(160, 7);
    let pty = SshChannelRequest::Pty(PtyRequest {
        term: "vt100".into(),
        size: TerminalSize {
            columns: 80,
            rows: 24,
            width: 640,
            height: 480,
        },
        modes,
    });
    let exec = SshChannelRequest::Exec(b"ls".to_vec());
    client.send_request(here, &pty, WantReply::Yes).unwrap();
    client.send_request(here, &exec, WantReply::No).unwrap();
    let wire = [
        &b"\x62\0\0\0\0\0\0\0\x07pty-req\x01\0\0\0\x05vt100"[..],
        b"\0\0\0\x50\0\0\0\x18\0\0\x02\x80\0\0\x01\xe0",
        b"\0\0\0\x0b\x35\0\0\0\x01\x81\0\0\x96\0\0",
    ];
    let exec = b"\x62\0\0\0\0\0\0\0\x04exec\0\0\0\0\x02ls".to_vec();
    assert_eq!(output(&mut client), [wire.concat(), exec]);
    let status = SshChannelRequest::ExitStatus(1);
    server.send_request(there, &status, WantReply::Yes).unwrap();
    let wire = b"\x62\0\0\0\0\0\0\0\x0bexit-status\0\0\0\0\x01".to_vec();
    assert_eq!(output(&mut server), [wire], "no reply is ever wanted");
}

#[test]
fn data_headers_by_hand() {
    let (mut client, mut server) = (client(), server());
    let (here, there) = session(&mut client, &mut server);
    let stdout = send(&mut client, here, DataKind::Stdout, b"abc").unwrap();
    assert_eq!(stdout, b"\x5e\0\0\0\0\0\0\0\x03abc");
    let stderr = send(&mut server, there, DataKind::Stderr, b"no").unwrap();
    assert_eq!(stderr, b"\x5f\0\0\0\0\0\0\0\x01\0\0\0\x02no");
    let got = client.handle_input(NOW, &stderr).unwrap();
    let HandledInput::Data {
        channel,
        kind,
        range,
    } = got
    else {
        panic!("{got:?}");
    };
    assert_eq!((channel, kind), (here, DataKind::Stderr));
    assert_eq!(stderr.get(range), Some(&b"no"[..]));
}

fn host() -> impl Strategy<Value = String> {
    "[a-z0-9.:]{0,40}"
}

fn path() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(1u8.., 1..60)
}

prop_compose! {
    fn originator()(address in host(), port: u32) -> Originator {
        Originator { address, port }
    }
}

fn kind() -> impl Strategy<Value = ChannelKind> {
    use ChannelKind as K;
    prop_oneof![
        Just(K::Session),
        Just(K::Agent),
        (host(), any::<u16>(), originator()).prop_map(|(host, port, originator)| {
            K::DirectTcpip {
                host,
                port,
                originator,
            }
        }),
        (host(), any::<u16>(), originator()).prop_map(|(address, port, originator)| {
            K::ForwardedTcpip {
                address,
                port,
                originator,
            }
        }),
        path().prop_map(|path| K::DirectStreamlocal { path }),
        path().prop_map(|path| K::ForwardedStreamlocal { path }),
        originator().prop_map(|originator| K::X11 { originator }),
        (1u32..3, any::<u32>()).prop_map(|(mode, unit)| K::Tun { mode, unit }),
    ]
}

fn request() -> impl Strategy<Value = SshChannelRequest> {
    use SshChannelRequest as R;
    let size = any::<[u32; 4]>().prop_map(|[columns, rows, width, height]| TerminalSize {
        columns,
        rows,
        width,
        height,
    });
    let modes = proptest::collection::vec((1u8..160, any::<u32>()), 0..200);
    let pty = (any::<String>(), size.clone(), modes).prop_map(|(term, size, list)| {
        let mut modes = TerminalModes::new();
        for (mode, value) in list {
            modes.set(mode, value);
        }
        PtyRequest { term, size, modes }
    });
    prop_oneof![
        pty.prop_map(R::Pty),
        any::<(Vec<u8>, Vec<u8>)>().prop_map(|(name, value)| R::Env { name, value }),
        Just(()).prop_map(|()| R::Shell),
        any::<Vec<u8>>().prop_map(R::Exec),
        any::<String>().prop_map(R::Subsystem),
        size.prop_map(R::WindowChange),
        any::<String>().prop_map(R::Signal),
        any::<u32>().prop_map(R::ExitStatus),
        any::<(String, bool, String)>().prop_map(|(name, core_dumped, message)| R::ExitSignal {
            name,
            core_dumped,
            message
        }),
        Just(()).prop_map(|()| R::EndOfWriting),
        any::<u32>().prop_map(R::Break),
        any::<(bool, String, String, u32)>().prop_map(|(single, protocol, cookie, screen)| {
            R::X11 {
                single,
                protocol,
                cookie: Secret::new(cookie),
                screen,
            }
        }),
        Just(()).prop_map(|()| R::Agent),
        any::<bool>().prop_map(R::FlowControl),
    ]
}

fn global() -> impl Strategy<Value = GlobalRequest> {
    use GlobalRequest as G;
    let keys = || proptest::collection::vec(any::<Vec<u8>>(), 0..5);
    prop_oneof![
        (host(), any::<u16>()).prop_map(|(address, port)| G::TcpipForward { address, port }),
        (host(), any::<u16>()).prop_map(|(address, port)| G::CancelTcpipForward { address, port }),
        path().prop_map(|path| G::StreamlocalForward { path }),
        path().prop_map(|path| G::CancelStreamlocalForward { path }),
        Just(G::KeepAlive),
        keys().prop_map(G::HostKeys),
        keys().prop_map(G::HostKeysProve),
        Just(G::NoMoreSessions),
        any::<Vec<u8>>().prop_map(|data| G::Custom {
            own: CustomMessage::new("x@example", data).unwrap(),
            want: WantReply::Yes,
        }),
    ]
}

proptest! {
    #[test]
    fn kinds_are_read_as_written(kind in kind()) {
        let mut out = Vec::new();
        kind.encode_fields(&mut out);
        let mut r = crate::wire::MessageReader::new(&out, "x");
        let read = ChannelKind::parse(kind.name().as_bytes(), &mut r);
        prop_assert_eq!(read, Ok(Ok(kind)));
    }

    #[test]
    fn requests_are_read_as_written(request in request()) {
        let mut out = Vec::new();
        request.encode_fields(&mut out);
        let mut r = crate::wire::MessageReader::new(&out, "x");
        let read = SshChannelRequest::parse(request.name().as_bytes(), &mut r);
        prop_assert_eq!(read, Ok(Some(request)));
    }

    #[test]
    fn globals_are_read_as_written(request in global()) {
        let mut out = Vec::new();
        request.encode_fields(&mut out);
        let mut r = crate::wire::MessageReader::new(&out, "x");
        let read = GlobalRequest::parse(request.name(), WantReply::Yes, &mut r);
        prop_assert_eq!(read, Ok(Some(request)));
    }

    /// No bytes after any message number, and no truncated valid message, cause a panic.
    #[test]
    fn any_payload_is_handled(number in 80u8..102, body: Vec<u8>, request in request(), cut: prop::sample::Index) {
        let (mut server, _) = server_with_session(5, 100);
        let mut payload = vec![number];
        payload.extend_from_slice(&body);
        let _ = server.handle_input(NOW, &payload);
        let (mut server, _) = server_with_session(5, 100);
        let mut fields = Vec::new();
        request.encode_fields(&mut fields);
        let whole = channel_request(0, request.name(), true, &fields);
        let _ = server.handle_input(NOW, &whole[..cut.index(whole.len())]);
    }
}

#[test]
fn a_cookie_is_not_printed() {
    let request = SshChannelRequest::X11 {
        single: false,
        protocol: "MIT-MAGIC-COOKIE-1".into(),
        cookie: Secret::new("00112233".into()),
        screen: 0,
    };
    assert!(!format!("{request:?}").contains("00112233"));
}
