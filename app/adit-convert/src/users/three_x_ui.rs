//! 3x-ui: the answer to `GET /panel/api/inbounds/list`, a list of inbounds, or one of them. The settings of an inbound
//! are JSON in a text; `totalGB` is a number of bytes, and times are in milliseconds.

use core::slice;
use std::collections::HashMap;

use super::collector::{UserCollector, UserDraft, count_limit};
use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::{self, Json};
use crate::server_entry::item_path;

/// Milliseconds of a second.
const MILLIS: u64 = 1000;

/// An inbound of Shadowsocks.
struct Inbound<'j> {
    /// The name for messages.
    label: String,
    path: String,
    method: &'j str,
    is_disabled: bool,
    /// Bytes by the name of the user.
    used: HashMap<&'j str, u64>,
}

/// Reads the users; `None` if it is not such a document.
pub(super) fn read(tree: &Json, found: &mut UserCollector<'_>) -> Option<()> {
    let (name, items) = match tree {
        Json::List(items) => ("", items.as_slice()),
        Json::Object(entries) => match entries.iter().find(|(key, _)| key == "obj") {
            Some((_, Json::List(items))) => ("obj", items.as_slice()),
            Some((_, inbound @ Json::Object(_))) => ("obj", slice::from_ref(inbound)),
            Some(_) => return None,
            None if entries.iter().any(|(key, _)| key == "settings") => ("", slice::from_ref(tree)),
            None => return None,
        },
        _ => return None,
    };
    for (i, item) in items.iter().enumerate() {
        read_inbound(item, item_path(name, i), found);
    }
    Some(())
}

/// Reads an inbound. What is wrong with it as a whole skips its users.
fn read_inbound(item: &Json, path: String, found: &mut UserCollector<'_>) {
    let Some(mut fields) = ObjectFields::of_object(item, path.clone(), &mut found.clerk) else {
        found.add(&path, Ok(UserDraft::default()));
        return;
    };
    let clerk = &mut found.clerk;
    let remark = fields.string_field("remark", clerk).unwrap_or_default();
    let label = match remark {
        "" => path.clone(),
        remark => remark.to_owned(),
    };
    let protocol = fields.string_field("protocol", clerk).unwrap_or_default();
    let is_disabled = fields.bool_field("enable", clerk) == Some(false);
    // Limits of a whole inbound have no equivalent: its users would have more than before.
    let total = fields
        .whole_number("total", clerk)
        .filter(|bytes| *bytes > 0);
    let expiry = fields
        .whole_number("expiryTime", clerk)
        .filter(|at| *at > 0);
    let parsed;
    let settings = match fields.get("settings") {
        Some(Json::Text(text)) => match json::parse_strict(text, "settings") {
            Ok(tree) => {
                parsed = tree;
                Some(&parsed)
            }
            Err(_) => None,
        },
        other => other,
    };
    let Some(settings) = settings else {
        found.skip(&path, &label, "its `settings` are not JSON");
        return;
    };
    if protocol != "shadowsocks" {
        let count = match settings {
            Json::Object(entries) => entries.iter().find_map(|(key, value)| match value {
                Json::List(clients) if key == "clients" => Some(clients.len()),
                _ => None,
            }),
            _ => None,
        };
        found.clerk.problems.clear();
        found.skip(
            &path,
            &label,
            &format!(
                "the inbound is {protocol}, and adit imports users of Shadowsocks: {} users",
                count.unwrap_or_default()
            ),
        );
        return;
    }
    for (name, is_set) in [("total", total.is_some()), ("expiryTime", expiry.is_some())] {
        if is_set {
            let text = "a limit of the whole inbound is left out: set those of its users";
            found.clerk.add_note(fields.field_path(name), text);
        }
    }
    let stats = fields.list_field("clientStats", &mut found.clerk);
    let used = stats.iter().filter_map(read_stats).collect();
    let settings_path = fields.field_path("settings");
    let Some(mut settings) = ObjectFields::of_object(settings, settings_path, &mut found.clerk)
    else {
        found.add(&path, Ok(UserDraft::default()));
        return;
    };
    let method = settings
        .string_field("method", &mut found.clerk)
        .unwrap_or_default();
    let server_key = settings.string_field("password", &mut found.clerk);
    let clients = settings.list_field("clients", &mut found.clerk);
    let inbound = Inbound {
        label,
        path,
        method,
        is_disabled,
        used,
    };
    if method.starts_with("2022-") && server_key.is_some() && !clients.is_empty() {
        found.clerk.add_note(
            settings.field_path("password"),
            format!(
                "the key of the server is not imported: clients need no change if the `ss://` listener has it, and the \
                 method {method}"
            ),
        );
    }
    if clients.is_empty() {
        let user = match server_key {
            Some(key) => single_user(&inbound, key),
            None => Err((
                inbound.label.clone(),
                "the inbound has no clients".to_owned(),
            )),
        };
        found.add(&inbound.path, user);
    }
    for (i, client) in clients.iter().enumerate() {
        let path = item_path(&settings.field_path("clients"), i);
        let user = read_client(client, path.clone(), &inbound, &mut found.clerk);
        if let Ok(draft) = &user
            && found
                .find(&draft.name)
                .is_some_and(|known| (&known.password, &known.psk) == (&draft.password, &draft.psk))
        {
            // The same client in several inbounds.
            found.clerk.problems.clear();
            continue;
        }
        found.add(&path, user);
    }
}

/// Returns the user of an inbound with one key for all.
fn single_user(inbound: &Inbound<'_>, key: &str) -> Result<UserDraft, (String, String)> {
    let mut user = UserDraft {
        name: inbound.label.trim().to_owned(),
        is_disabled: inbound.is_disabled,
        ..UserDraft::default()
    };
    let set = user.set_secret(inbound.method, key);
    set.map_err(|why| (inbound.label.clone(), why))?;
    Ok(user)
}

/// Returns the usage of a client.
fn read_stats(item: &Json) -> Option<(&str, u64)> {
    let Json::Object(entries) = item else {
        return None;
    };
    let field = |name: &str| {
        let found = entries.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value)
    };
    let bytes = |name: &str| field(name).and_then(Json::as_u64).unwrap_or_default();
    let sum = bytes("up").saturating_add(bytes("down"));
    Some((field("email")?.as_str()?, sum))
}

fn read_client(
    item: &Json,
    path: String,
    inbound: &Inbound<'_>,
    clerk: &mut ConversionContext<'_>,
) -> Result<UserDraft, (String, String)> {
    let Some(mut fields) = ObjectFields::of_object(item, path, clerk) else {
        return Ok(UserDraft::default());
    };
    let email = fields.string_field("email", clerk).unwrap_or_default();
    let name = email.trim().to_owned();
    let named = |why: String| (name.clone(), why);
    let mut user = UserDraft {
        name: name.clone(),
        is_disabled: inbound.is_disabled || fields.bool_field("enable", clerk) == Some(false),
        used: inbound.used.get(email).copied(),
        ..UserDraft::default()
    };
    // A client's own method is empty in inbounds of 2022 methods.
    let method = fields
        .string_field("method", clerk)
        .unwrap_or(inbound.method);
    let Some(password) = fields.string_field("password", clerk) else {
        return Err(named("it has no password".to_owned()));
    };
    user.set_secret(method, password).map_err(named)?;
    user.limits.quota = fields
        .whole_number("totalGB", clerk)
        .filter(|bytes| *bytes > 0);
    if user.limits.quota.is_some() {
        user.limits.period = Some("total");
    }
    user.limits.devices = fields.whole_number("limitIp", clerk).and_then(count_limit);
    match fields.get("expiryTime") {
        None => {}
        // The time from the first connection on.
        Some(Json::Real(millis)) if *millis < 0.0 => {
            return Err(named(
                "its time begins with its first connection (`expiryTime` is negative): set a date in 3x-ui first"
                    .to_owned(),
            ));
        }
        Some(value) => match value.as_u64() {
            Some(0) => {}
            Some(millis) => user.limits.expires = Some((millis / MILLIS).max(1)),
            None => {
                return Err(named(
                    "its `expiryTime` is not a time in milliseconds".to_owned(),
                ));
            }
        },
    }
    if fields
        .whole_number("reset", clerk)
        .is_some_and(|days| days > 0)
    {
        clerk.add_note(
            "settings.clients.reset",
            "left out: adit does not renew users; a quota can be for each day, week or month",
        );
    }
    Ok(user)
}

#[cfg(test)]
mod tests {
    use adit_config::text::Secret;

    use crate::users::{ExportedLimits, UserExport, UserFormat, read_user_export};

    fn read(text: &str) -> UserExport {
        read_user_export(text, "a.json", Some(UserFormat::ThreeXUi)).unwrap()
    }

    fn answer(settings: &str, rest: &str) -> String {
        let settings = serde_json::to_string(settings).unwrap();
        format!(
            r#"{{"success":true,"msg":"","obj":[{{"id":1,"up":1,"down":2,"total":0,"remark":"ss","enable":true,
            "expiryTime":0,"listen":"","port":8388,"protocol":"shadowsocks","settings":{settings},
            "streamSettings":"{{}}","tag":"in-8388","sniffing":"{{}}"{rest}}}]}}"#
        )
    }

    #[test]
    fn clients_are_read() {
        let settings = r#"{"method":"2022-blake3-aes-128-gcm","password":"AAAAAAAAAAAAAAAAAAAAAA==",
            "network":"tcp,udp","clients":[
            {"method":"","password":"AQEBAQEBAQEBAQEBAQEBAQ==","email":"anna","limitIp":2,"totalGB":53687091200,
             "expiryTime":1798761600000,"enable":true,"tgId":"","subId":"x","comment":"","reset":30},
            {"method":"","password":"AgICAgICAgICAgICAgICAg==","email":"bob","limitIp":0,"totalGB":0,"expiryTime":0,
             "enable":false,"tgId":"","subId":"","reset":0},
            {"method":"","password":"AwMDAwMDAwMDAwMDAwMDAw==","email":"carol","expiryTime":-2592000000,"enable":true}]}"#;
        let stats = r#","clientStats":[{"id":1,"inboundId":1,"enable":true,"email":"anna","up":3,"down":4,"total":0}]"#;
        let found = read(&answer(settings, stats));
        let expected = ExportedLimits {
            quota: Some(53_687_091_200),
            period: Some("total"),
            expires: Some(1_798_761_600),
            devices: Some(2),
            ..ExportedLimits::default()
        };
        assert_eq!(found.users.len(), 2, "{found:?}");
        assert_eq!(found.users[0].limits, expected);
        assert_eq!(
            found.users[0].psk,
            Some(Secret::from("AQEBAQEBAQEBAQEBAQEBAQ=="))
        );
        assert_eq!(found.users[0].used, Some(7));
        assert_eq!(
            (found.users[1].limits, found.users[1].is_disabled),
            (ExportedLimits::default(), true)
        );
        assert!(
            found.skipped[0].why.contains("first connection"),
            "{found:?}"
        );
        let notes: String = found.notes.iter().map(ToString::to_string).collect();
        assert!(
            notes.contains("key of the server is not imported") && notes.contains("does not renew"),
            "{notes}"
        );
    }

    #[test]
    fn other_inbounds_are_skipped_and_repeated_clients_are_one() {
        let client = r#"{"clients":[{"method":"aes-256-gcm","password":"pw","email":"anna"}],"method":"aes-256-gcm"}"#;
        let list = format!(
            r#"[{{"protocol":"shadowsocks","remark":"a","settings":{client}}},
                {{"protocol":"shadowsocks","remark":"b","settings":{client}}},
                {{"protocol":"vless","remark":"c","settings":"{{\"clients\":[{{}},{{}}]}}"}},
                {{"protocol":"shadowsocks","remark":"d","settings":"{{"}},
                {{"protocol":"shadowsocks","remark":"all","settings":{{"method":"aes-128-gcm","password":"one"}}}}]"#
        );
        let found = read(&list);
        let names: Vec<&str> = found.users.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(names, ["anna", "all"]);
        assert_eq!(found.users[0].password, Some(Secret::from("pw")));
        let skipped: Vec<String> = found
            .skipped
            .iter()
            .map(|user| format!("{}: {}", user.name, user.why))
            .collect();
        assert!(
            skipped[0].contains("c: the inbound is vless") && skipped[0].contains("2 users"),
            "{skipped:?}"
        );
        assert!(
            skipped[1].contains("d: its `settings` are not JSON"),
            "{skipped:?}"
        );
    }
}
