//! Listeners as a port, `:port`, an address or a URL, in every option and in files.

use std::fs;
use std::net::SocketAddr;

use adit_interop::origin::OriginServer;
use adit_interop::shadowsocks::BLAKE3_AES_128;
use adit_interop::socks_client::{self, Destination};
use adit_interop::{AditProcess, TempFolder, free_port, traffic};

use crate::setup::{ALLOW, ended, says, server, start};

/// Checks that a proxy is on loopback, and works.
fn works(front: AditProcess, origin: &OriginServer) {
    assert!(front.addr().ip().is_loopback(), "{}", front.addr());
    let to = Destination::Addr(origin.addr());
    let stream = socks_client::connect_through(front.addr(), None, &to).unwrap();
    traffic::check_one_byte(stream).unwrap();
    front.stop().unwrap();
}

#[test]
fn a_port_is_a_proxy_on_loopback() {
    let origin = OriginServer::start().unwrap();
    let back = server(BLAKE3_AES_128);
    let hop = BLAKE3_AES_128.url(back.addr());
    let folder = TempFolder::new("listen").unwrap();
    let state = folder.path().join("state").display().to_string();
    for form in ["0", "127.0.0.1:0", "mixed://127.0.0.1:0"] {
        let file = folder
            .write_file(
                "adit.toml",
                format!("[route.a]\nlisten = \"{form}\"\nvia = \"{hop}\"\n"),
            )
            .unwrap();
        let file = file.display().to_string();
        for args in [
            &["run", form, &hop][..],
            &["run", "-L", form, "-F", &hop],
            &["-L", form, "-F", &hop],
            &["-v", &format!("--listen={form}"), &format!("-F={hop}")],
            &["client", "-l", form, &hop],
            &["run", "-c", &file],
        ] {
            works(start(args), &origin);
        }
    }
    back.stop().unwrap();
    for form in [free_port().to_string(), format!(":{}", free_port())] {
        let port = form.trim_start_matches(':').to_owned();
        for args in [
            &["server", "--no-qr", "-l", &form, "--state", &state][..],
            &["kcp", "server", "-l", &form, "-t", "127.0.0.1:9"],
        ] {
            let process = start(args);
            let addr: SocketAddr = process.addr();
            assert_eq!(addr.port().to_string(), port, "{args:?}");
            assert!(addr.ip().is_unspecified(), "{args:?}: {addr}");
            process.stop().unwrap();
        }
    }
    let process = start(&["kcp", "client", "-l", "0", "-r", "127.0.0.1:9"]);
    assert!(process.addr().ip().is_loopback());
    process.stop().unwrap();
}

#[test]
fn a_port_of_all_addresses_is_closed_by_default() {
    let port = free_port();
    for args in [
        &["run", &format!(":{port}")][..],
        &["-L", &format!(":{port}")],
        &["check", "-L", &format!(":{port}")],
    ] {
        let refused = ended(args);
        assert_eq!(refused.code, Some(3), "{args:?}: {}", refused.output);
        says(
            &refused.output,
            &[
                "refusing to be an open proxy",
                "allow_open_proxy=true",
                "127.0.0.1",
            ],
        );
    }
    let open = start(&["-L", &format!(":{port}?allow_open_proxy=true&{ALLOW}")]);
    assert!(open.addr().ip().is_unspecified());
    open.stop().unwrap();
    // In a file, the message names the line.
    let folder = TempFolder::new("listen").unwrap();
    let file = folder.path().join("adit.toml");
    fs::write(&file, format!("[route.a]\nlisten = [\"0\", \":{port}\"]\n")).unwrap();
    let refused = ended(&["check", "-c", &file.display().to_string()]);
    assert_eq!(refused.code, Some(3), "{}", refused.output);
    says(
        &refused.output,
        &["refusing to be an open proxy", "adit.toml:2:"],
    );
}

#[test]
fn other_texts_are_no_listeners() {
    for form in ["host", "1080/target", "::1", "a b:1"] {
        let refused = ended(&["check", "-L", form]);
        assert_eq!(refused.code, Some(3), "{form}: {}", refused.output);
        says(&refused.output, &["not a URL", "a listener can be a port"]);
    }
    let refused = ended(&["server", "-l", "ss://aes-256-gcm:word@:1"]);
    assert_eq!(refused.code, Some(2), "{}", refused.output);
    says(&refused.output, &["adit run URL"]);
    let refused = ended(&["-F", "ss://aes-256-gcm:word@127.0.0.1:1"]);
    assert_eq!(refused.code, Some(2), "{}", refused.output);
    says(&refused.output, &["-L starts"]);
}
