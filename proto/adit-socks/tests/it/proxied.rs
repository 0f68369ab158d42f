//! PROXY headers, version 2.

use adit_socks::ProxyHeader;
use adit_wire::HandshakeProgress;
use adit_wire::codec_laws::run_handshake;

fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
    [
        b"\r\n\r\n\0\r\nQUIT\n",
        &[command, family][..],
        &len[..],
        rest,
    ]
    .concat()
}

/// Returns the result and the number of bytes left, checked with chunks of every size.
fn read(bytes: &[u8]) -> Result<(HandshakeProgress<Option<String>>, usize), String> {
    let one = |pieces: &[usize]| {
        run_handshake(&mut ProxyHeader, bytes, pieces)
            .map(|(step, sent, rest)| {
                assert!(sent.is_empty());
                let step = match step {
                    HandshakeProgress::Done(client) => {
                        HandshakeProgress::Done(client.map(|addr| addr.to_string()))
                    }
                    HandshakeProgress::NeedMore { total } => HandshakeProgress::NeedMore { total },
                };
                (step, rest.len())
            })
            .map_err(|(why, _)| why.to_string())
    };
    let whole = one(&[usize::MAX]);
    assert_eq!(one(&[1]), whole);
    whole
}

#[test]
fn a_proxy_says_whose_connection_it_is() {
    let v4 = [192, 0, 2, 7, 127, 0, 0, 1, 0x30, 0x39, 0x20, 0xc4];
    let mut v6 = [0; 36];
    v6[..2].copy_from_slice(&[0x20, 0x01]);
    v6[15] = 9;
    v6[32..34].copy_from_slice(&[1, 187]);
    for (header, client) in [
        (header(0x21, 0x11, &v4), Some("192.0.2.7:12345")),
        // The addresses are followed by optional fields, which are ignored.
        (
            header(0x21, 0x11, &[&v4[..], &[4, 0, 1, 0]].concat()),
            Some("192.0.2.7:12345"),
        ),
        (header(0x21, 0x21, &v6), Some("[2001::9]:443")),
        (header(0x20, 0x00, &[]), None),
        (header(0x20, 0x11, &v4), None),
        (header(0x21, 0x31, &[0; 216]), None),
    ] {
        let bytes = [&header[..], b"hello"].concat();
        assert_eq!(
            read(&bytes),
            Ok((HandshakeProgress::Done(client.map(str::to_owned)), 5))
        );
        for cut in 0..header.len() {
            assert!(
                matches!(
                    read(&header[..cut]),
                    Ok((HandshakeProgress::NeedMore { .. }, _))
                ),
                "{cut}"
            );
        }
    }
}

#[test]
fn everything_else_is_refused() {
    for (bytes, why) in [
        (b"PROXY TCP4 192.0.2.7".to_vec(), "signature"),
        (b"\r\n\r\n\0\r\nQUIX".to_vec(), "signature"),
        (vec![5, 1, 0], "signature"),
        (header(0x11, 0x11, &[0; 12]), "version"),
        (header(0x22, 0x11, &[0; 12]), "version"),
        (header(0x21, 0x11, &[0; 9]), "addresses"),
        (header(0x21, 0x21, &[0; 12]), "addresses"),
        (header(0x21, 0x11, &[0; 5000]), "longer"),
    ] {
        let said = read(&bytes).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}
