//! The limits of a user in a request, of which each field is checked, and their changes as text.

use adit_config::text::{format_date, format_size};
use adit_engine::UserLimits;
use adit_wire::{QuotaPeriod, UnixTime};
use serde_json::Value;

use super::reply::Refusal;

/// The fields of the limits of a user.
const FIELDS: [&str; 6] = ["quota", "period", "expires", "rate", "sessions", "devices"];

/// Returns limits after the changes of a JSON object, in which absent fields change nothing, and `null` removes a
/// limit.
pub(super) fn merge_limits(before: UserLimits, changes: &Value) -> Result<UserLimits, Refusal> {
    let bad = |why: String| Refusal::bad_request(why);
    let Value::Object(fields) = changes else {
        return Err(bad(format!(
            "limits are an object with some of the fields {}",
            FIELDS.join(", ")
        )));
    };
    let mut limits = before;
    for (field, value) in fields {
        match field.as_str() {
            "quota" => limits.quota = positive(field, value)?,
            "rate" => limits.rate = positive(field, value)?,
            "sessions" => limits.sessions = small(field, value)?,
            "devices" => limits.devices = small(field, value)?,
            "expires" => limits.expires = positive(field, value)?.map(UnixTime),
            "period" => {
                let period = value.as_str().and_then(QuotaPeriod::from_name);
                limits.period = period.ok_or_else(|| {
                    let names = QuotaPeriod::ALL.map(QuotaPeriod::name);
                    bad(format!("`period` must be one of {}", names.join(", ")))
                })?;
            }
            _ => {
                let near = adit_config::nearest_word(field, FIELDS);
                let hint = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the fields are {}", FIELDS.join(", ")),
                };
                return Err(bad(format!("unknown field `{field}`: {hint}")));
            }
        }
    }
    Ok(limits)
}

/// Returns a whole number of at least 1, or `None` for `null`.
fn positive(field: &str, value: &Value) -> Result<Option<u64>, Refusal> {
    if value.is_null() {
        return Ok(None);
    }
    let number = value.as_u64();
    let number = number.filter(|number| (1..=i64::MAX.unsigned_abs()).contains(number));
    number.map(Some).ok_or_else(|| {
        let unit = match field {
            "quota" => "bytes",
            "rate" => "bytes per second",
            "expires" => "seconds since 1970",
            _ => "at least 1",
        };
        Refusal::bad_request(format!(
            "`{field}` must be a whole number greater than 0 ({unit}), or null for no limit"
        ))
    })
}

/// Returns a whole number from 1 to a million, or `None` for `null`.
fn small(field: &str, value: &Value) -> Result<Option<u32>, Refusal> {
    if value.is_null() {
        return Ok(None);
    }
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| (1..=1_000_000).contains(number));
    number.map(Some).ok_or_else(|| {
        Refusal::bad_request(format!(
            "`{field}` must be a whole number from 1 to 1000000, or null for no limit"
        ))
    })
}

/// Returns the limits that change, with their values before and after.
#[must_use]
pub fn changed_limits(before: UserLimits, after: UserLimits) -> Vec<String> {
    let size = |limits: UserLimits| {
        let period = match limits.period {
            QuotaPeriod::Total => String::new(),
            period => format!("/{}", period.name()),
        };
        limits.quota.map(|bytes| format_size(bytes) + &period)
    };
    let expires = |limits: UserLimits| limits.expires.map(|at| format_date(at.0));
    let rate = |limits: UserLimits| limits.rate.map(|rate| format_size(rate) + "/s");
    let pairs = [
        ("quota", size(before), size(after)),
        ("expires", expires(before), expires(after)),
        ("rate", rate(before), rate(after)),
        (
            "sessions",
            before.sessions.map(|n| n.to_string()),
            after.sessions.map(|n| n.to_string()),
        ),
        (
            "devices",
            before.devices.map(|n| n.to_string()),
            after.devices.map(|n| n.to_string()),
        ),
    ];
    let changed = pairs
        .into_iter()
        .filter(|(_, before, after)| before != after);
    changed
        .map(|(name, before, after)| {
            let after = after.as_deref().unwrap_or("none");
            match before {
                Some(before) => format!("{name} {before} to {after}"),
                None => format!("{name} {after}"),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_changed_alone() {
        let before = UserLimits {
            quota: Some(5),
            sessions: Some(2),
            ..UserLimits::default()
        };
        let changes =
            json!({"quota": null, "period": "month", "rate": 10, "expires": 1_800_000_000});
        let expected = UserLimits {
            quota: None,
            period: QuotaPeriod::Month,
            rate: Some(10),
            expires: Some(UnixTime(1_800_000_000)),
            ..before
        };
        assert_eq!(merge_limits(before, &changes), Ok(expected));
        assert_eq!(merge_limits(before, &json!({})), Ok(before));
    }

    #[test]
    fn wrong_fields_are_named() {
        for (changes, says) in [
            (json!([]), "limits are an object"),
            (
                json!({"quota": 0}),
                "`quota` must be a whole number greater than 0 (bytes)",
            ),
            (json!({"quota": -1}), "`quota` must"),
            (json!({"quota": "50GB"}), "`quota` must"),
            (
                json!({"rate": 1.5}),
                "`rate` must be a whole number greater than 0 (bytes per second)",
            ),
            (
                json!({"period": "year"}),
                "`period` must be one of total, day, week, month",
            ),
            (
                json!({"sessions": 4_294_967_296_u64}),
                "`sessions` must be a whole number from 1",
            ),
            (json!({"devices": 0}), "`devices` must"),
            (
                json!({"expires": "2027-01-01"}),
                "`expires` must be a whole number greater than 0 (seconds since 1970)",
            ),
            (
                json!({"qouta": 1}),
                "unknown field `qouta`: did you mean `quota`?",
            ),
            (
                json!({"x": 1}),
                "unknown field `x`: the fields are quota, period",
            ),
        ] {
            let why = merge_limits(UserLimits::default(), &changes).unwrap_err();
            assert!(why.error.contains(says), "{}", why.error);
        }
    }
}
