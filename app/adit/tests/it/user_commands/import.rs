//! `adit user import`: users of other programs, with their secrets and limits.

use adit_interop::origin::OriginServer;
use adit_interop::socks_client::{self, Destination};
use adit_interop::traffic;
use serde_json::{Value, json};

use super::world::{Served, url_with};
use crate::setup::{says, start};

/// A key that no other user has.
const ANNAS_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQ==";
const CAROLS_KEY: &str = "AwMDAwMDAwMDAwMDAwMDAw==";

/// An export of 3x-ui with three clients.
fn inbounds() -> String {
    let settings = json!({
        "method": "2022-blake3-aes-128-gcm", "password": "AAECAwQFBgcICQoLDA0ODw==", "network": "tcp,udp",
        "clients": [
            {"method": "", "password": ANNAS_KEY, "email": "anna", "limitIp": 2, "totalGB": 50_000_000_000_u64,
             "expiryTime": 4_102_444_800_000_u64, "enable": true, "tgId": "", "subId": "", "reset": 0},
            {"method": "", "password": "AgICAgICAgICAgICAgICAg==", "email": "bob", "limitIp": 0, "totalGB": 0,
             "expiryTime": 0, "enable": false, "tgId": "", "subId": "", "reset": 0},
            {"method": "", "password": CAROLS_KEY, "email": "carol", "limitIp": 0, "totalGB": 1000,
             "expiryTime": 0, "enable": true, "tgId": "", "subId": "", "reset": 0},
        ],
    });
    json!({"success": true, "msg": "", "obj": [{
        "id": 1, "up": 0, "down": 0, "total": 0, "remark": "ss", "enable": true, "expiryTime": 0, "listen": "",
        "port": 8388, "protocol": "shadowsocks", "settings": settings.to_string(), "streamSettings": "{}",
        "clientStats": [{"email": "carol", "up": 400, "down": 700, "enable": true}],
    }]})
    .to_string()
}

fn outcomes(result: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let users = result["users"].as_array().unwrap().iter();
    users
        .map(|user| (text(&user["name"]), text(&user["outcome"])))
        .collect()
}

fn pair(name: &str, outcome: &str) -> (String, String) {
    (name.to_owned(), outcome.to_owned())
}

/// A dry run changes nothing; an import can be repeated; users connect with the keys that they had.
#[test]
fn users_of_a_panel_keep_their_keys_and_limits() {
    let served = Served::start();
    served.write("export.json", &inbounds());
    let file = served.path("export.json");
    let file = file.to_str().unwrap();
    let before = served.file("users.json");

    let planned = served.prints(&["import", file, "--dry-run"]);
    says(
        &planned,
        &[
            "would add",
            "anna",
            "quota 50.0 GB",
            "expires 2100-01-01",
            "devices 2",
            "a new key at proxy",
            "skipped",
            "bob",
            "it is disabled",
            "3x-ui: would add 2, skipped 1",
        ],
    );
    assert_eq!(served.file("users.json"), before);
    let list = served.json(&["list"]);
    assert!(!list.to_string().contains("anna"), "{list}");

    let done = served.json(&["import", file]);
    assert_eq!(
        outcomes(&done),
        [pair("anna", "added"), pair("carol", "added")]
    );
    assert_eq!(done["format"], "3x-ui");
    assert!(served.file("users.json").contains(ANNAS_KEY));
    assert!(served.file("proxy.users").contains("\nanna:"));
    assert!(!served.file("proxy.users").contains(ANNAS_KEY));
    let anna = served.json(&["show", "anna", "--reveal"]);
    assert_eq!(
        (&anna["quota"], &anna["expires"], &anna["devices"]),
        (
            &50_000_000_000_u64.into(),
            &4_102_444_800_u64.into(),
            &2.into()
        )
    );
    let origin = OriginServer::start().unwrap();
    let to = Destination::Addr(origin.addr());
    let url = url_with(&anna, "ss://");
    let client = start(&["run", "mixed://127.0.0.1:0", &url]);
    traffic::download(
        socks_client::connect_through(client.addr(), None, &to).unwrap(),
        100_000,
    )
    .unwrap();
    // What carol had used counts: the quota is exceeded.
    let carol = served.json(&["show", "carol"]);
    assert_eq!(
        (&carol["state"], &carol["usedDown"]),
        (&"over-quota".into(), &1100.into())
    );

    let again = served.json(&["import", file]);
    assert_eq!(
        outcomes(&again),
        [pair("anna", "unchanged"), pair("carol", "unchanged")]
    );
    served.prints(&["limit", "anna", "--quota", "none"]);
    served.prints(&["rotate", "carol"]);
    let again = served.json(&["import", file, "--dry-run"]);
    assert_eq!(
        outcomes(&again),
        [pair("anna", "changed"), pair("carol", "unchanged")]
    );
    says(&again.to_string(), &["keeps another key at main"]);
    assert!(!served.file("users.json").contains(CAROLS_KEY));
    let again = served.json(&["import", file, "--replace-keys"]);
    assert_eq!(
        outcomes(&again),
        [pair("anna", "changed"), pair("carol", "changed")]
    );
    assert!(served.file("users.json").contains(CAROLS_KEY));
    // The limits and the usage outlive the process.
    let served = served.restart();
    let carol = served.wait_for(&["show", "carol"], |carol| carol["state"] == "over-quota");
    assert_eq!(carol["usedDown"], 1100);
}

/// The URLs that users have are enough.
#[test]
fn urls_are_users() {
    let served = Served::start();
    let key = ANNAS_KEY.replace('=', "%3D");
    let url = |name: &str| format!("ss://2022-blake3-aes-128-gcm:{key}@h.example:8388#{name}\n");
    served.write(
        "urls.txt",
        &format!("# users\n{}vmess://x\n{}", url("anna"), url("")),
    );
    let file = served.path("urls.txt");
    let file = file.to_str().unwrap();
    let text = served.prints(&["import", file]);
    says(
        &text,
        &[
            "skipped       line 3",
            "it has no name",
            "links: added 1, skipped 2",
        ],
    );
    let users: Value = serde_json::from_str(&served.file("users.json")).unwrap();
    assert_eq!(users["anna"], ANNAS_KEY);
    let again = served.json(&["import", file, "--from", "links"]);
    assert_eq!(outcomes(&again), [pair("anna", "unchanged")]);
}

/// One user who cannot be imported keeps no other away; many users need several requests.
#[test]
fn mistakes_concern_their_user_alone() {
    let served = Served::start();
    let mut lines = "name,psk,quota\n".to_owned();
    for n in 0..700_u16 {
        // Base64 of 16 bytes.
        lines += &format!("user-{n},{n:04}{}==,1GB\n", "A".repeat(18));
    }
    // The key of another user, and that of a user who exists.
    lines += &format!(
        "twin,{ANNAS_KEY},1GB\nother-twin,{ANNAS_KEY},1GB\nthief,MDEyMzQ1Njc4OTo7PD0+Pw==,1GB\n"
    );
    lines += "broken,,1GB\n";
    served.write("users.csv", &lines);
    let file = served.path("users.csv");
    let file = file.to_str().unwrap();
    for words in [&["--dry-run"][..], &[]] {
        let words = [&["import", file, "--listener", "main"], words].concat();
        let failed = served.fails(&words, 1);
        says(
            &failed,
            &[
                "refused       other-twin",
                "refused       thief",
                "skipped       broken",
                "2 of 703 users cannot be imported",
            ],
        );
        assert!(!failed.contains(ANNAS_KEY), "{failed}");
        assert!(!failed.contains("refused       twin"), "{failed}");
    }
    let users: Value = serde_json::from_str(&served.file("users.json")).unwrap();
    assert_eq!(users.as_object().unwrap().len(), 702);
    assert_eq!(users["twin"], ANNAS_KEY);
    assert!(users.get("thief").is_none());
    let thief = served.fails(&["show", "thief"], 1);
    says(&thief, &["no such user"]);

    for (text, says_what) in [
        ("{}", "not an export of users that adit knows"),
        ("name,pasword\n", "a column that adit does not know"),
    ] {
        served.write("users.csv", text);
        says(&served.fails(&["import", file], 3), &[says_what]);
    }
    says(
        &served.fails(&["import", "missing.csv"], 3),
        &["cannot read `missing.csv`"],
    );
    says(
        &served.fails(&["import", file, "--from", "excel"], 2),
        &["the formats are outline"],
    );
}
