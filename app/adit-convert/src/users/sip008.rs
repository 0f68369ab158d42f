//! SIP008: each server of a document is a user with its secret. A document that a provider wrote for one client has one
//! user under several names; one that lists a server's users has all of them.

use super::collector::{UserCollector, UserDraft};
use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::Json;

/// Reads the users; `None` if it is not such a document.
pub(super) fn read(tree: &Json, found: &mut UserCollector<'_>) -> Option<()> {
    let items = match tree {
        // Before SIP008 had an envelope it was the list alone.
        Json::List(items) => items.as_slice(),
        Json::Object(_) => {
            let mut top = ObjectFields::of_object(tree, String::new(), &mut found.clerk)?;
            if !top.has_field("servers") {
                return None;
            }
            let items = top.list_field("servers", &mut found.clerk);
            if top.has_field("bytes_remaining") {
                let text = "left out: it is not known which of the users it is for";
                found.clerk.add_note("bytes_remaining", text);
            }
            if !found.clerk.problems.is_empty() {
                return Some(());
            }
            items
        }
        _ => return None,
    };
    found.add_all("servers", items, |item, path, found| {
        read_server(item, path, &mut found.clerk)
    });
    Some(())
}

fn read_server(
    item: &Json,
    path: String,
    clerk: &mut ConversionContext<'_>,
) -> Result<UserDraft, (String, String)> {
    let Some(mut fields) = ObjectFields::of_object(item, path, clerk) else {
        return Ok(UserDraft::default());
    };
    let remarks = fields.string_field("remarks", clerk);
    let id = fields.string_field("id", clerk);
    let name = remarks.or(id).unwrap_or_default().trim().to_owned();
    let mut user = UserDraft {
        name: name.clone(),
        ..UserDraft::default()
    };
    let password = fields.string_field("password", clerk).unwrap_or_default();
    let method = fields.string_field("method", clerk).unwrap_or_default();
    user.set_secret(method, password)
        .map_err(|why| (name, why))?;
    Ok(user)
}

#[cfg(test)]
mod tests {
    use adit_config::text::Secret;

    use crate::users::{UserFormat, read_user_export};

    #[test]
    fn the_last_key_of_a_chain_is_the_users() {
        let text = r#"{"version":1,"servers":[
            {"id":"1","remarks":"anna","server":"192.0.2.1","server_port":8388,"method":"2022-blake3-aes-128-gcm",
             "password":"AAAAAAAAAAAAAAAAAAAAAA==:AQEBAQEBAQEBAQEBAQEBAQ=="},
            {"id":"two","server":"192.0.2.1","server_port":8388,"method":"aes-128-gcm","password":"pw"},
            {"id":"3","server":"192.0.2.1","server_port":8388,"method":"new","password":"pw"}],"bytes_remaining":1}"#;
        let found = read_user_export(text, "a", Some(UserFormat::Sip008)).unwrap();
        assert_eq!(
            found.users[0].psk,
            Some(Secret::from("AQEBAQEBAQEBAQEBAQEBAQ=="))
        );
        assert_eq!(
            (found.users[1].name.as_str(), &found.users[1].password),
            ("two", &Some(Secret::from("pw")))
        );
        assert!(found.skipped[0].why.contains("method `new`"), "{found:?}");
        assert_eq!(found.notes.len(), 1);
    }
}
