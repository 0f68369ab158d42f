//! adit as the obfuscation plugin of shadowsocks-libev, with the same options at both ends.

use std::io::{Read, Write};
use std::time::Duration;

use adit_interop::http_server::HttpServer;
use adit_interop::origin::OriginServer;
use adit_interop::plugin::{LibevPluginHost, retry_until_success};
use adit_interop::shadowsocks::AES_256;
use adit_interop::socks_client::{self, Destination};
use adit_interop::traffic::{self, CloseBehavior};

use crate::setup::bin;

/// Sends streams through a SOCKS5 port.
fn visit(client: &LibevPluginHost) {
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let open = || socks_client::connect_through(client.addr(), None, &to);
    retry_until_success(|| traffic::check_one_byte(open()?)).unwrap();
    traffic::check_streams(CloseBehavior::OnEitherEnd, open).unwrap();
}

fn both_ends(options: &str) {
    let server = LibevPluginHost::start_server(AES_256, &bin(), options).unwrap();
    let client =
        LibevPluginHost::start_socks_client(AES_256, server.addr(), &bin(), options).unwrap();
    visit(&client);
}

macro_rules! on_both_ends {
    ($($name:ident: $options:literal;)+) => {
        $(#[test]
        fn $name() {
            both_ends($options);
        })+
    };
}

on_both_ends! {
    plain: "obfs=plain";
    http_simple: "obfs=http_simple;param=bing.com;key=pass";
    http_post: "obfs=http_post;param=bing.com;key=pass";
    random_head: "obfs=random_head";
    ticket_auth: "obfs=tls1.2_ticket_auth;param=bing.com;key=pass";
    ticket_fastauth: "obfs=tls1.2_ticket_fastauth;param=bing.com;key=pass";
    go_quiet: "obfs=go_quiet;param=bing.com;key=pass";
    go_quiet_firefox: "obfs=go_quiet;param=bing.com;key=pass;browser=firefox;fast-open";
}

/// The sides can also be set, and GoQuiet's own names are supported.
#[test]
fn sides_and_other_names() {
    let server = "server;Key=pass;WebServerAddr=127.0.0.1:1";
    let server = LibevPluginHost::start_server(AES_256, &bin(), server).unwrap();
    let options = "client;ServerName=bing.com;Key=pass;TicketTimeHint=3600;Browser=chrome";
    let client =
        LibevPluginHost::start_socks_client(AES_256, server.addr(), &bin(), options).unwrap();
    visit(&client);
}

/// A client without the key finds a web server, byte for byte.
#[test]
fn strangers_are_taken_to_a_web_server() {
    let page = b"nothing to see here";
    let web = HttpServer::start(&[("/", "text/plain", page)]).unwrap();
    let options = format!(
        "obfs=go_quiet;param=bing.com;key=pass;redirect=127.0.0.1:{}",
        web.port()
    );
    let server = LibevPluginHost::start_server(AES_256, &bin(), &options).unwrap();
    let mut seen = Vec::new();
    retry_until_success(|| {
        let mut stranger = traffic::connect_directly(server.addr())?;
        stranger.write_all(b"GET / HTTP/1.1\r\nHost: bing.com\r\nConnection: close\r\n\r\n")?;
        seen.clear();
        stranger.read_to_end(&mut seen)?;
        anyhow::ensure!(!seen.is_empty());
        Ok(())
    })
    .unwrap();
    assert!(seen.ends_with(page), "{}", String::from_utf8_lossy(&seen));
    // A client with a wrong key is also unauthenticated; the correct key is accepted.
    let wrong = options.replace("key=pass", "key=other");
    let client =
        LibevPluginHost::start_socks_client(AES_256, server.addr(), &bin(), &wrong).unwrap();
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let tried = socks_client::connect_through(client.addr(), None, &to).and_then(|stream| {
        stream.set_read_timeout(Some(Duration::from_secs(3)))?;
        traffic::check_one_byte(stream)
    });
    assert!(tried.is_err() && origin.connection_count() == 0);
    let client =
        LibevPluginHost::start_socks_client(AES_256, server.addr(), &bin(), &options).unwrap();
    visit(&client);
}

/// The peer's own obfs plugins, next to those of adit.
#[test]
fn simple_obfs_is_as_it_was() {
    let server =
        LibevPluginHost::start_server(AES_256, "obfs-server".as_ref(), "obfs=tls").unwrap();
    let options = "obfs=tls;obfs-host=bing.com";
    let client =
        LibevPluginHost::start_socks_client(AES_256, server.addr(), "obfs-local".as_ref(), options)
            .unwrap();
    visit(&client);
}
