//! The grammar: parts and their positions.

use adit_config::{Endpoint, SecretText, Span};
use proptest::prelude::*;

fn parse(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap_or_else(|flaw| panic!("{text}: {flaw}"))
}

#[test]
fn every_part_has_its_place() {
    let text = "SOCKS5://an%20na:p%3aw@[2001:db8::1]:1080/t?udp=false&dial=2s#my%20name";
    let url = parse(text);
    let at = |span: Span| &text[span.start..span.end];
    assert_eq!(url.scheme.value, "socks5");
    assert_eq!(at(url.scheme.span), "SOCKS5");
    let user = url.user.unwrap();
    assert_eq!((user.value.as_str(), at(user.span)), ("an na", "an%20na"));
    let secret = url.secret.unwrap();
    assert_eq!(at(secret.span), "p%3aw");
    assert!(matches!(&secret.value, SecretText::Literal(s) if s.expose() == "p:w"));
    let host = url.host.unwrap();
    assert_eq!(
        (host.value.to_string().as_str(), at(host.span)),
        ("2001:db8::1", "[2001:db8::1]")
    );
    let port = url.port.unwrap();
    assert_eq!((port.value, at(port.span)), (1080, "1080"));
    assert_eq!(at(url.address), "[2001:db8::1]:1080");
    let target = url.target.unwrap();
    assert_eq!((target.value.as_str(), at(target.span)), ("t", "t"));
    let params: Vec<_> = url
        .params
        .iter()
        .map(|pair| (at(pair.key.span), at(pair.value.span)))
        .collect();
    assert_eq!(params, [("udp", "false"), ("dial", "2s")]);
    let name = url.name.unwrap();
    assert_eq!(
        (name.value.as_str(), at(name.span)),
        ("my name", "my%20name")
    );
}

#[test]
fn parts_can_be_missing() {
    let url = parse("mixed://:1080");
    assert!(url.user.is_none() && url.secret.is_none() && url.host.is_none());
    assert!(url.target.is_none() && url.params.is_empty() && url.name.is_none());
    assert_eq!(url.port.unwrap().value, 1080);
    let url = parse("direct://");
    assert!(url.host.is_none() && url.port.is_none());
    let url = parse("http://h#");
    assert!(url.port.is_none() && url.name.is_none());
    let url = parse("socks4a://me@h:1");
    assert!(url.user.is_some() && url.secret.is_none());
    let url = parse("tcp://:53/[::1]:53");
    assert_eq!(url.target.unwrap().value, "[::1]:53");
}

#[test]
fn secrets_name_files_and_variables() {
    let secret = |text: &str| parse(text).secret.unwrap().value;
    assert_eq!(
        secret("socks5://u:@/etc/k@h:1"),
        SecretText::File("/etc/k".into())
    );
    assert_eq!(
        secret("ss://m:@~/a%20b@h:1"),
        SecretText::File("~/a b".into())
    );
    assert_eq!(
        secret("ss://m:$KEY_1@h:1"),
        SecretText::Variable("KEY_1".into())
    );
    assert_eq!(secret("ss://m:%40x@h:1"), SecretText::Literal("@x".into()));
    assert_eq!(secret("ss://m:%24x@h:1"), SecretText::Literal("$x".into()));
    assert_eq!(
        secret("socks5://u:a@b@h:1"),
        SecretText::Literal("a@b".into())
    );
}

#[test]
fn what_is_no_url_is_refused() {
    let long = format!("mixed://{}:1", "a".repeat(8 * 1024));
    for (text, why) in [
        ("", "not a URL: `scheme://` is missing"),
        ("127.0.0.1:1080", "not a URL: `scheme://` is missing"),
        ("://h:1", "not a scheme"),
        ("a b://h:1", "not a scheme"),
        (
            "mixed://a b:1",
            "a URL cannot contain spaces or control characters",
        ),
        (
            "mixed://a\u{7}:1",
            "a URL cannot contain spaces or control characters",
        ),
        ("mixed://h:", "the port is not a number from 0 to 65535"),
        (
            "mixed://h:65536",
            "the port is not a number from 0 to 65535",
        ),
        ("mixed://h:+1", "the port is not a number from 0 to 65535"),
        ("mixed://::1:1080", "not an IPv6 address in brackets"),
        ("mixed://[::1:1080", "not an IPv6 address in brackets"),
        ("mixed://[::1]1080", "not an IPv6 address in brackets"),
        ("mixed://[1.2.3.4]:1", "not an IPv6 address in brackets"),
        ("mixed://a%41:1", "a host name cannot contain `%`"),
        ("mixed://h:1?a=1&a=2", "`a` is written twice"),
        ("mixed://h:1?a=%ff", "percent-encoding that is not UTF-8"),
        (
            "socks5://u:$@h:1",
            "`$` must be followed by the name of an environment variable",
        ),
        (
            "socks5://u:$a-b@h:1",
            "`$` must be followed by the name of an environment variable",
        ),
        ("socks5://u:12?34@h:1", "`@` after `?` or `#`"),
        ("socks5://u:12#34@h:1", "`@` after `?` or `#`"),
        ("ss://m:12#34@h:1", "`@` after `?` or `#`"),
        (&long, "a URL has at most 8192 bytes"),
    ] {
        let flaw = Endpoint::parse(text).expect_err(text);
        assert_eq!(flaw.title, why, "{text}");
        assert!(flaw.span.end <= text.len().max(1), "{text}");
    }
}

#[test]
fn names_of_any_encoding_are_read() {
    assert_eq!(
        parse("mixed://:1#%B0%A1").name.unwrap().value,
        "\u{fffd}\u{fffd}"
    );
    assert_eq!(parse("mixed://:1#a+b c").name.unwrap().value, "a+b c");
    // Share links often have such fragments.
    assert!(Endpoint::parse("ss://YWVzLTEyOC1nY206dGVzdA@h:1#@channel").is_ok());
    assert!(Endpoint::parse("ss://YWVzLTEyOC1nY206dGVzdEBoOjE#@channel").is_ok());
}

proptest! {
    #[test]
    fn no_text_panics_and_spans_are_inside(text in "([a-z0-9+]{0,6}://)?[ -~ä€]{0,60}") {
        match Endpoint::parse(&text) {
            Ok(url) => {
                for span in [url.scheme.span, url.address] {
                    prop_assert!(text.get(span.start..span.end).is_some());
                }
            }
            Err(flaw) => prop_assert!(text.get(flaw.span.start..flaw.span.end).is_some()),
        }
    }
}
