//! Outline: the answer to `GET /access-keys` (`method`), or `shadowbox_config.json` (`encryptionMethod`).

use super::collector::{UserCollector, UserDraft};
use crate::fields::ObjectFields;
use crate::json::Json;

/// The method of keys that name none.
const DEFAULT_METHOD: &str = "chacha20-ietf-poly1305";

/// Reads the users; `None` if it is not such a document.
pub(super) fn read(tree: &Json, found: &mut UserCollector<'_>) -> Option<()> {
    let mut top = ObjectFields::of_object(tree, String::new(), &mut found.clerk)?;
    if !top.has_field("accessKeys") {
        return None;
    }
    let mut ports = Vec::new();
    let items = top.list_field("accessKeys", &mut found.clerk);
    found.add_all("accessKeys", items, |item, path, found| {
        read_key(item, path, &mut ports, found)
    });
    for (port, method) in ports {
        found.clerk.add_note(
            "accessKeys",
            format!(
                "clients need no change if an `ss://` listener with the method {method} is on port {port}"
            ),
        );
    }
    Some(())
}

fn read_key(
    item: &Json,
    path: String,
    ports: &mut Vec<(u16, String)>,
    found: &mut UserCollector<'_>,
) -> Result<UserDraft, (String, String)> {
    let clerk = &mut found.clerk;
    let Some(mut fields) = ObjectFields::of_object(item, path, clerk) else {
        return Ok(UserDraft::default());
    };
    let id = match fields.get("id") {
        Some(Json::Whole(number)) => number.to_string(),
        Some(value) => value.as_str().unwrap_or_default().to_owned(),
        None => String::new(),
    };
    let label = fields
        .string_field("name", clerk)
        .unwrap_or_default()
        .trim();
    let mut user = UserDraft {
        name: match (label, id.as_str()) {
            ("", "") => String::new(),
            ("", id) => format!("key-{id}"),
            (label, _) => label.to_owned(),
        },
        ..UserDraft::default()
    };
    let named = |why: String| (user.name.clone(), why);
    let password = fields.string_field("password", clerk);
    let method = match fields.first_of(&["method", "encryptionMethod"]) {
        Some((_, value)) => value.as_str().unwrap_or_default(),
        None => DEFAULT_METHOD,
    };
    let Some(password) = password else {
        return Err(named("it has no password".to_owned()));
    };
    let port = fields.port_field("port", clerk);
    let mut quota = None;
    if let Some(mut limit) = fields.object_field("dataLimit", clerk) {
        quota = limit.whole_number("bytes", clerk);
        if quota.is_none() {
            return Err(named("its data limit cannot be read".to_owned()));
        }
    }
    user.set_secret(method, password)
        .map_err(|why| (user.name.clone(), why))?;
    if let Some(bytes) = quota {
        clerk.add_note(
            "accessKeys.dataLimit",
            "Outline counts the last 30 days; adit counts months of the calendar",
        );
        if bytes == 0 {
            clerk.add_note(
                fields.field_path("dataLimit"),
                "a limit of 0 blocks the key: the user gets a quota of 1 byte",
            );
        }
        user.limits.quota = Some(bytes.max(1));
        user.limits.period = Some("month");
    }
    if let Some(port) = port {
        let at = (port, method.to_owned());
        if !ports.contains(&at) && ports.len() < MAX_PORTS {
            ports.push(at);
        }
    }
    // People give the same name to several keys.
    if !id.is_empty() && found.find(&user.name).is_some() {
        user.name = format!("{}-{id}", user.name);
    }
    Ok(user)
}

/// Ports that are named in notes at most.
const MAX_PORTS: usize = 20;

#[cfg(test)]
mod tests {
    use adit_config::text::Secret;

    use crate::users::{ExportedUser, UserExport, UserFormat, read_user_export};

    fn read(text: &str) -> UserExport {
        read_user_export(text, "a.json", Some(UserFormat::Outline)).unwrap()
    }

    #[test]
    fn both_documents_are_read() {
        let api = r#"{"accessKeys":[
            {"id":"0","name":"Anna ","password":"pw0","port":9795,"method":"chacha20-ietf-poly1305",
             "accessUrl":"ss://x@192.0.2.1:9795/?outline=1","dataLimit":{"bytes":5000}},
            {"id":"1","name":"","password":"pw1","port":9795,"method":"aes-128-gcm","accessUrl":""},
            {"id":"2","name":"Anna","password":"pw2","port":9796,"method":"chacha20-ietf-poly1305"}]}"#;
        let found = read(api);
        let names: Vec<&str> = found.users.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(names, ["Anna", "key-1", "Anna-2"]);
        let ExportedUser {
            password,
            psk,
            limits,
            ..
        } = &found.users[0];
        assert_eq!((password, psk), (&Some(Secret::from("pw0")), &None));
        assert_eq!((limits.quota, limits.period), (Some(5000), Some("month")));
        assert_eq!(found.users[1].limits, Default::default());
        let notes: String = found.notes.iter().map(ToString::to_string).collect();
        assert!(
            notes.contains("30 days") && notes.contains("chacha20-ietf-poly1305 is on port 9795"),
            "{notes}"
        );
        let file = r#"{"accessKeys":[{"id":"7","metricsId":"m","name":"b","password":"p","port":1,
            "encryptionMethod":"aes-256-gcm","dataLimit":{"bytes":0}}],"nextId":8}"#;
        let found = read(file);
        assert_eq!(found.users[0].limits.quota, Some(1));
        assert_eq!(found.skipped, []);
    }

    #[test]
    fn a_key_that_cannot_be_read_is_skipped_with_the_reason() {
        let text = r#"{"accessKeys":[
            {"id":"0","name":"a"},
            {"id":"1","name":"b","password":"p","method":"rc4-md5"},
            {"id":"2","name":"c","password":"p","dataLimit":{"bytes":"many"}},
            {"id":"3","name":"d\u001b","password":"p"},
            7]}"#;
        let found = read(text);
        assert_eq!(found.users, []);
        let skipped: Vec<String> = found
            .skipped
            .iter()
            .map(|user| format!("{}: {}", user.name, user.why))
            .collect();
        assert!(skipped[0].contains("a: it has no password"), "{skipped:?}");
        assert!(
            skipped[1].starts_with("b: its method `rc4-md5`"),
            "{skipped:?}"
        );
        assert!(skipped[2].starts_with("c: its data limit"), "{skipped:?}");
        assert!(skipped[3].contains("no control characters"), "{skipped:?}");
        assert!(skipped[4].starts_with("accessKeys[4]: "), "{skipped:?}");
        assert!(!format!("{found:?}").contains("pw"));
    }
}
