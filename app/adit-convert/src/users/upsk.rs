//! Keys by name, as shadowsocks-go and adit keep them: `{"NAME": "BASE64"}`; or the users of their API:
//! `{"users": [{"username": …, "uPSK": …}]}`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::collector::{UserCollector, UserDraft};
use crate::fields::ObjectFields;
use crate::json::Json;

/// The lengths of keys, in bytes.
const KEY_LENGTHS: [usize; 2] = [16, 32];

/// Returns true if all values are texts.
pub(super) fn is_map(entries: &[(String, Json)]) -> bool {
    !entries.is_empty() && entries.iter().all(|(_, value)| value.as_str().is_some())
}

/// Reads the users; `None` if it is not such a document.
pub(super) fn read(tree: &Json, found: &mut UserCollector<'_>) -> Option<()> {
    let items = match tree {
        Json::List(items) => items.as_slice(),
        Json::Object(entries) => match entries.iter().find(|(key, _)| key == "users") {
            Some((_, Json::List(items))) => items.as_slice(),
            _ if is_map(entries) => {
                for (name, key) in entries {
                    let user = draft(name, key.as_str().unwrap_or_default());
                    found.add(name, user);
                }
                return Some(());
            }
            _ => return None,
        },
        _ => return None,
    };
    found.add_all("users", items, |item, path, found| {
        let Some(mut fields) = ObjectFields::of_object(item, path, &mut found.clerk) else {
            return Ok(UserDraft::default());
        };
        let name = fields.string_field("username", &mut found.clerk);
        let key = fields.string_field("uPSK", &mut found.clerk);
        draft(name.unwrap_or_default(), key.unwrap_or_default())
    });
    Some(())
}

fn draft(name: &str, key: &str) -> Result<UserDraft, (String, String)> {
    if key.is_empty() {
        let why = "it has no key: `GET /users` names keys only with `reveal`";
        return Err((name.to_owned(), why.to_owned()));
    }
    let decoded = STANDARD.decode(key).map(Zeroizing::new);
    if !decoded.is_ok_and(|key| KEY_LENGTHS.contains(&key.len())) {
        let why = "its key is not base64 of 16 or 32 bytes";
        return Err((name.to_owned(), why.to_owned()));
    }
    Ok(UserDraft {
        name: name.trim().to_owned(),
        psk: Some(key.into()),
        ..UserDraft::default()
    })
}

#[cfg(test)]
mod tests {
    use adit_config::text::Secret;

    use crate::users::{UserFormat, read_user_export};

    #[test]
    fn keys_are_read_from_both_forms() {
        for text in [
            r#"{"anna":"AQEBAQEBAQEBAQEBAQEBAQ==","bob":"short","users":"AgICAgICAgICAgICAgICAg=="}"#,
            r#"{"users":[{"username":"anna","uPSK":"AQEBAQEBAQEBAQEBAQEBAQ==","downlinkBytes":1},
                {"username":"bob"},{"username":"users","uPSK":"AgICAgICAgICAgICAgICAg=="}]}"#,
        ] {
            let found = read_user_export(text, "a", Some(UserFormat::Upsk)).unwrap();
            let names: Vec<&str> = found.users.iter().map(|user| user.name.as_str()).collect();
            assert_eq!(names, ["anna", "users"], "{text}");
            assert_eq!(
                found.users[0].psk,
                Some(Secret::from("AQEBAQEBAQEBAQEBAQEBAQ=="))
            );
            assert_eq!(found.skipped[0].name, "bob");
            assert!(!found.skipped[0].why.contains("short"));
        }
    }
}
