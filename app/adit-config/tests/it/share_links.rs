//! Shadowsocks links in the formats of other programs.

use adit_config::{Endpoint, SecretText, link};

struct Vector {
    uri: &'static str,
    method: &'static str,
    password: &'static str,
    host: &'static str,
    port: u16,
    plugin: Option<&'static str>,
    tag: Option<&'static str>,
    sip002: &'static str,
}

/// Links as other implementations write them, each with its SIP002 form.
const VECTORS: [Vector; 8] = [
    Vector {
        uri: "ss://YWVzLTEyOC1nY206dGVzdA@192.168.100.1:8888#Example1",
        method: "aes-128-gcm",
        password: "test",
        host: "192.168.100.1",
        port: 8888,
        plugin: None,
        tag: Some("Example1"),
        sip002: "ss://YWVzLTEyOC1nY206dGVzdA@192.168.100.1:8888#Example1",
    },
    Vector {
        uri: "ss://cmM0LW1kNTpwYXNzd2Q@192.168.100.1:8888/?plugin=obfs-local%3Bobfs%3Dhttp#Example2",
        method: "rc4-md5",
        password: "passwd",
        host: "192.168.100.1",
        port: 8888,
        plugin: Some("obfs-local;obfs=http"),
        tag: Some("Example2"),
        sip002: "ss://cmM0LW1kNTpwYXNzd2Q@192.168.100.1:8888/?plugin=obfs-local%3Bobfs%3Dhttp#Example2",
    },
    Vector {
        uri: "ss://YWVzLTEyOC1nY206dGVzdA%3D%3D@192.168.100.1:8888#padded",
        method: "aes-128-gcm",
        password: "test",
        host: "192.168.100.1",
        port: 8888,
        plugin: None,
        tag: Some("padded"),
        sip002: "ss://YWVzLTEyOC1nY206dGVzdA@192.168.100.1:8888#padded",
    },
    Vector {
        uri: "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@[2001:db8::1]:20220/#a%20b",
        method: "2022-blake3-aes-128-gcm",
        password: "AAECAwQFBgcICQoLDA0ODw==",
        host: "2001:db8::1",
        port: 20220,
        plugin: None,
        tag: Some("a b"),
        sip002: "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@[2001:db8::1]:20220#a%20b",
    },
    Vector {
        uri: "ss://2022-blake3-aes-256-gcm:yMnKy8zNzs%2FQ0dLT1NXW19jZ2tvc3d7f4OHi4%2BTl5uc%3D%3AyMnKy8zNzs%2FQ0dLT1NXW19jZ2tvc3d7f4OHi4%2BTl5uc%3D@example.com:443/?plugin=v2ray-plugin%3Bserver#x",
        method: "2022-blake3-aes-256-gcm",
        password: "yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f4OHi4+Tl5uc=:yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f4OHi4+Tl5uc=",
        host: "example.com",
        port: 443,
        plugin: Some("v2ray-plugin;server"),
        tag: Some("x"),
        sip002: "ss://2022-blake3-aes-256-gcm:yMnKy8zNzs%2FQ0dLT1NXW19jZ2tvc3d7f4OHi4%2BTl5uc%3D%3AyMnKy8zNzs%2FQ0dLT1NXW19jZ2tvc3d7f4OHi4%2BTl5uc%3D@example.com:443/?plugin=v2ray-plugin%3Bserver#x",
    },
    Vector {
        uri: "ss://2022-blake3-aes-256-gcm:yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f4OHi4+Tl5uc=@example.com:443",
        method: "2022-blake3-aes-256-gcm",
        password: "yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f4OHi4+Tl5uc=",
        host: "example.com",
        port: 443,
        plugin: None,
        tag: None,
        sip002: "ss://2022-blake3-aes-256-gcm:yMnKy8zNzs%2FQ0dLT1NXW19jZ2tvc3d7f4OHi4%2BTl5uc%3D@example.com:443",
    },
    Vector {
        uri: "ss://YmYtY2ZiOnRlc3RAMTkyLjE2OC4xMDAuMTo4ODg4#legacy",
        method: "bf-cfb",
        password: "test",
        host: "192.168.100.1",
        port: 8888,
        plugin: None,
        tag: Some("legacy"),
        sip002: "ss://YmYtY2ZiOnRlc3Q@192.168.100.1:8888#legacy",
    },
    Vector {
        uri: "ss://YmYtY2ZiOnRlQHN0OnhAMTkyLjE2OC4xMDAuMTo4ODg4",
        method: "bf-cfb",
        password: "te@st:x",
        host: "192.168.100.1",
        port: 8888,
        plugin: None,
        tag: None,
        sip002: "ss://YmYtY2ZiOnRlQHN0Ong@192.168.100.1:8888",
    },
];

fn password(url: &Endpoint) -> &str {
    match &url.secret.as_ref().expect("a secret").value {
        SecretText::Literal(secret) => secret.expose(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn vectors_are_read() {
    for vector in &VECTORS {
        let url = Endpoint::parse(vector.uri).unwrap();
        assert_eq!(
            url.user.as_ref().unwrap().value,
            vector.method,
            "{}",
            vector.uri
        );
        assert_eq!(password(&url), vector.password, "{}", vector.uri);
        assert_eq!(url.host.as_ref().unwrap().value.to_string(), vector.host);
        assert_eq!(url.port.as_ref().unwrap().value, vector.port);
        assert_eq!(
            url.param("plugin").map(|pair| pair.value.value.as_str()),
            vector.plugin
        );
        assert_eq!(
            url.name.as_ref().map(|name| name.value.as_str()),
            vector.tag
        );
    }
}

#[test]
fn vectors_are_written_as_sip002() {
    for vector in &VECTORS {
        assert_eq!(link::ss_to_sip002(vector.uri).unwrap(), vector.sip002);
        assert_eq!(link::canonical_url(vector.uri).unwrap(), vector.sip002);
        assert_eq!(link::ss_to_sip002(vector.sip002).unwrap(), vector.sip002);
    }
}

#[test]
fn other_spellings_of_the_same_link() {
    for same in [
        "ss://aes-128-gcm:test@h:1",
        "ss://AES-128-GCM:test@H:1",
        "ss://aead_aes_128_gcm:test@h:1/",
        "ss://aes-128-gcm%3Atest@h:1",
        "ss://YWVzLTEyOC1nY206dGVzdA==@h:1",
        "ss://YWVzLTEyOC1nY206dGVzdEBoOjE=",
        "ss://YWVzLTEyOC1nY206dGVzdEBoOjE=/",
        "SS://YWVzLTEyOC1nY206dGVzdEBoOjE%3D",
    ] {
        assert_eq!(
            link::canonical_url(same).unwrap(),
            "ss://YWVzLTEyOC1nY206dGVzdA@h:1",
            "{same}"
        );
    }
    // base64 of either alphabet, with the slash as a digit: `m:???>>>@h:1` and `m:???>>>`.
    for same in [
        "ss://bTo/Pz8+Pj5AaDox",
        "ss://bTo_Pz8-Pj5AaDox",
        "ss://bTo/Pz8+Pj4@h:1",
    ] {
        assert_eq!(
            password(&Endpoint::parse(same).unwrap()),
            "???>>>",
            "{same}"
        );
    }
}

#[test]
fn foreign_keys_stay_behind_ours() {
    let text = "ss://aes-128-gcm:test@h:1?outline=1&udp=true&group=2&dial=60s";
    assert_eq!(
        link::canonical_url(text).unwrap(),
        "ss://YWVzLTEyOC1nY206dGVzdA@h:1/?udp=true&dial=1m&outline=1&group=2"
    );
}

#[test]
fn a_reference_stays_a_reference() {
    for text in [
        "ss://aes-128-gcm:@/etc/a%20b@h:1",
        "ss://2022-blake3-aes-128-gcm:$KEY@:8388",
    ] {
        assert_eq!(link::canonical_url(text).unwrap(), text);
    }
}

#[test]
fn broken_links_are_refused() {
    for (text, why) in [
        ("ss://", "method and key are missing"),
        ("ss://!!!", "method, key, host and port are missing"),
        ("ss://YWJj", "method, key, host and port are missing"),
        ("ss://YWJj@h:1", "neither `METHOD:KEY` nor base64 of it"),
        ("ss://%ff@h:1", "percent-encoding that is not UTF-8"),
        // m:k@h and m:k@h:x
        ("ss://bTprQGg", "the port is missing in the base64 text"),
        (
            "ss://bTprQGg6eA",
            "the port is not a number from 0 to 65535",
        ),
    ] {
        let words = vec![text.to_owned()];
        let problems = adit_config::Plan::from_words(&words).unwrap_err();
        assert_eq!(problems[0].title, why, "{text}");
    }
    assert_eq!(
        link::ss_to_sip002("http://h:1").unwrap_err().title,
        "not a Shadowsocks link"
    );
}

#[test]
fn a_link_is_made_for_a_server() {
    use adit_shadowsocks::Method;
    use adit_wire::Host;
    let host = Host::parse("2001:db8::1").unwrap();
    assert_eq!(
        link::shadowsocks_link(
            Method::Blake3Aes128Gcm,
            "AAECAwQFBgcICQoLDA0ODw==",
            &host,
            443
        ),
        "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D@[2001:db8::1]:443"
    );
    // With a key for the server on the way (SIP023), before the user's.
    let keys = "AAECAwQFBgcICQoLDA0ODw==:EBESExQVFhcYGRobHB0eHw==";
    let made = link::shadowsocks_link(Method::Blake3Aes128Gcm, keys, &host, 443);
    assert_eq!(
        made,
        "ss://2022-blake3-aes-128-gcm:AAECAwQFBgcICQoLDA0ODw%3D%3D%3A\
         EBESExQVFhcYGRobHB0eHw%3D%3D@[2001:db8::1]:443"
    );
    assert_eq!(link::canonical_url(&made).unwrap(), made);
    assert_eq!(password(&Endpoint::parse(&made).unwrap()), keys);
    let host = Host::parse("a.example").unwrap();
    assert_eq!(
        link::shadowsocks_link("bf-cfb".parse().unwrap(), "test", &host, 443),
        "ss://YmYtY2ZiOnRlc3Q@a.example:443"
    );
    assert_eq!(
        link::shadowsocks_link(Method::Aes128Gcm, "test", &host, 443),
        "ss://YWVzLTEyOC1nY206dGVzdA@a.example:443"
    );
}
