//! Marzban: the answer to `GET /api/users`, a list of users, or one of them.

use core::slice;

use super::collector::{UserCollector, UserDraft};
use crate::conversion_context::ConversionContext;
use crate::fields::ObjectFields;
use crate::json::Json;

/// The method of users that name none.
const DEFAULT_METHOD: &str = "chacha20-ietf-poly1305";

/// Reads the users; `None` if it is not such a document.
pub(super) fn read(tree: &Json, found: &mut UserCollector<'_>) -> Option<()> {
    let items = match tree {
        Json::List(items) => items.as_slice(),
        Json::Object(_) => {
            let mut top = ObjectFields::of_object(tree, String::new(), &mut found.clerk)?;
            if top.has_field("users") {
                if let Some(total) = top.whole_number("total", &mut found.clerk) {
                    note_missing(
                        total,
                        top.list_field("users", &mut found.clerk).len(),
                        found,
                    );
                }
                top.list_field("users", &mut found.clerk)
            } else if top.has_field("username") {
                slice::from_ref(tree)
            } else {
                return None;
            }
        }
        _ => return None,
    };
    found.add_all("users", items, |item, path, found| {
        read_user(item, path, &mut found.clerk)
    });
    Some(())
}

/// Notes that the document is one page of several.
fn note_missing(total: u64, here: usize, found: &mut UserCollector<'_>) {
    let here = u64::try_from(here).unwrap_or(u64::MAX);
    if total > here {
        found.clerk.add_note(
            "total",
            format!(
                "the panel has {total} users, and this page {here} of them: export the others too"
            ),
        );
    }
}

fn read_user(
    item: &Json,
    path: String,
    clerk: &mut ConversionContext<'_>,
) -> Result<UserDraft, (String, String)> {
    let Some(mut fields) = ObjectFields::of_object(item, path, clerk) else {
        return Ok(UserDraft::default());
    };
    let name = fields.string_field("username", clerk).unwrap_or_default();
    let mut user = UserDraft {
        name: name.trim().to_owned(),
        ..UserDraft::default()
    };
    let named = |why: &str| (name.to_owned(), why.to_owned());
    let (secret, others) = match fields.object_field("proxies", clerk) {
        Some(mut proxies) => {
            let secret = proxies.object_field("shadowsocks", clerk);
            (secret, proxies.take_unread().join(", "))
        }
        None => (None, String::new()),
    };
    let Some(mut secret) = secret else {
        let why = match others.as_str() {
            "" => "it has no `proxies.shadowsocks`".to_owned(),
            others => format!("it has no Shadowsocks password, only {others}"),
        };
        return Err((name.to_owned(), why));
    };
    if !others.is_empty() {
        clerk.add_note(
            "users.proxies",
            format!("only Shadowsocks is imported; users also have {others}"),
        );
    }
    let password = secret.string_field("password", clerk);
    let method = secret
        .string_field("method", clerk)
        .unwrap_or(DEFAULT_METHOD);
    let Some(password) = password else {
        return Err(named("its Shadowsocks password is missing"));
    };
    user.set_secret(method, password)
        .map_err(|why| (name.to_owned(), why))?;
    user.limits.quota = fields
        .whole_number("data_limit", clerk)
        .filter(|bytes| *bytes > 0);
    user.used = fields.whole_number("used_traffic", clerk);
    let strategy = fields.string_field("data_limit_reset_strategy", clerk);
    if user.limits.quota.is_some() {
        user.limits.period =
            Some(read_period(strategy, clerk).map_err(|why| (name.to_owned(), why))?);
    }
    user.limits.expires = fields.whole_number("expire", clerk).filter(|at| *at > 0);
    match fields.string_field("status", clerk) {
        Some("disabled") => user.is_disabled = true,
        Some("on_hold") => {
            let Some(seconds) = fields.whole_number("on_hold_expire_duration", clerk) else {
                return Err(named(
                    "it is on hold, and the time it has from its first connection is missing",
                ));
            };
            user.limits.expires_after = Some(seconds.max(1));
            clerk.add_note(
                "users.status",
                "the time of users on hold begins with the import, not with their first connection",
            );
        }
        // `limited` and `expired` follow from the usage and the limits.
        _ => {}
    }
    if fields.object_field("next_plan", clerk).is_some() {
        clerk.add_note(
            "users.next_plan",
            "left out: adit has no plan that follows the current one",
        );
    }
    Ok(user)
}

/// Returns the period of a quota.
fn read_period(
    strategy: Option<&str>,
    clerk: &mut ConversionContext<'_>,
) -> Result<&'static str, String> {
    let period = match strategy {
        None | Some("no_reset") => return Ok("total"),
        Some("day") => "day",
        Some("week") => "week",
        Some("month") => "month",
        Some("year") => {
            clerk.add_note(
                "users.data_limit_reset_strategy",
                "a quota for each year becomes a quota for all time: adit has days, weeks and months",
            );
            return Ok("total");
        }
        Some(_) => return Err("its `data_limit_reset_strategy` is not known".to_owned()),
    };
    clerk.add_note(
        "users.data_limit_reset_strategy",
        "Marzban's periods begin with the user; those of adit begin at midnight UTC, on Mondays, and with the month",
    );
    Ok(period)
}

#[cfg(test)]
mod tests {
    use crate::users::{ExportedLimits, UserExport, UserFormat, read_user_export};

    fn read(text: &str) -> UserExport {
        read_user_export(text, "a.json", Some(UserFormat::Marzban)).unwrap()
    }

    #[test]
    fn limits_and_usage_are_read() {
        let text = r#"{"users":[
            {"username":"anna","status":"active","proxies":{"shadowsocks":{"password":"p1","method":"aes-256-gcm"},
             "vless":{"id":"1","flow":""}},"expire":1798761600,"data_limit":50000000000,
             "data_limit_reset_strategy":"month","used_traffic":7,"lifetime_used_traffic":9,"links":["ss://x"],
             "excluded_inbounds":{},"inbounds":{"shadowsocks":["SS"]},"note":"vip"},
            {"username":"bob","status":"disabled","proxies":{"shadowsocks":{"password":"p2"}},"expire":null,
             "data_limit":null,"data_limit_reset_strategy":"no_reset","used_traffic":0},
            {"username":"carol","status":"on_hold","proxies":{"shadowsocks":{"password":"p3"}},"expire":0,
             "on_hold_expire_duration":86400,"data_limit":10,"data_limit_reset_strategy":"year"}],"total":5}"#;
        let found = read(text);
        assert_eq!(found.skipped, []);
        let expected = ExportedLimits {
            quota: Some(50_000_000_000),
            period: Some("month"),
            expires: Some(1_798_761_600),
            ..ExportedLimits::default()
        };
        assert_eq!(found.users[0].limits, expected);
        assert_eq!(
            (found.users[0].used, found.users[0].is_disabled),
            (Some(7), false)
        );
        assert_eq!(found.users[1].limits, ExportedLimits::default());
        assert_eq!(
            (found.users[1].used, found.users[1].is_disabled),
            (None, true)
        );
        assert_eq!(found.users[2].limits.expires_after, Some(86_400));
        assert_eq!(found.users[2].limits.period, Some("total"));
        let notes: String = found.notes.iter().map(ToString::to_string).collect();
        for says in [
            "users also have vless",
            "each year",
            "on hold",
            "5 users, and this page 3",
        ] {
            assert!(notes.contains(says), "{says}: {notes}");
        }
    }

    #[test]
    fn a_user_with_an_unknown_limit_is_never_without_one() {
        let text = r#"[
            {"username":"a","proxies":{"vless":{"id":"1"}}},
            {"username":"b","proxies":{"shadowsocks":{"password":"p"}},"expire":"2027-01-01T00:00:00"},
            {"username":"c","proxies":{"shadowsocks":{"password":"p"}},"data_limit":-5},
            {"username":"d","proxies":{"shadowsocks":{"password":"p"}},"data_limit":5,"data_limit_reset_strategy":"x"},
            {"username":"e","status":"on_hold","proxies":{"shadowsocks":{"password":"p"}}},
            {"username":"f","proxies":{"shadowsocks":{"password":"p"}}}]"#;
        let found = read(text);
        let names: Vec<&str> = found.users.iter().map(|user| user.name.as_str()).collect();
        assert_eq!(names, ["f"]);
        let skipped: Vec<String> = found
            .skipped
            .iter()
            .map(|user| format!("{}: {}", user.name, user.why))
            .collect();
        assert!(skipped[0].contains("only vless"), "{skipped:?}");
        assert!(
            skipped[1].contains("`users[1].expire` is not a whole number"),
            "{skipped:?}"
        );
        assert!(skipped[2].contains("data_limit"), "{skipped:?}");
        assert!(skipped[3].contains("reset_strategy"), "{skipped:?}");
        assert!(skipped[4].contains("on hold"), "{skipped:?}");
    }
}
