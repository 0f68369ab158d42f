//! Exports of users of other programs: any text is a list of users, or a problem, and no message shows a secret.

#![no_main]

use std::collections::HashSet;

use adit_convert::users::{MAX_EXPORT_USERS, UserFormat, read_user_export};
use adit_fuzz::split_flags;
use libfuzzer_sys::fuzz_target;

/// A password that a message must never show.
const PLANTED_PASSWORD: &str = "hunter2";

fn check(text: &str, format: Option<UserFormat>) -> String {
    let found = match read_user_export(text, "export", format) {
        Ok(found) => found,
        Err(problem) => {
            let shown = problem.to_string();
            assert!(!shown.is_empty());
            return shown;
        }
    };
    assert!(format.is_none_or(|format| format == found.format));
    assert!(found.users.len() <= MAX_EXPORT_USERS);
    let names: HashSet<&str> = found.users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names.len(), found.users.len());
    for user in &found.users {
        assert!((1..=255).contains(&user.name.len()) && user.name.trim() == user.name);
        assert!(!user.name.contains(char::is_control));
        assert!(user.password.is_some() || user.psk.is_some() || user.login.is_some());
        let limits = &user.limits;
        assert!(limits.quota != Some(0) && limits.expires != Some(0) && limits.rate != Some(0));
        assert!(limits.sessions != Some(0) && limits.devices != Some(0));
        assert_eq!(limits.quota.is_some(), limits.period.is_some());
    }
    let again = read_user_export(text, "export", format).expect("as before");
    assert!(again == found);
    let skipped = found.skipped.iter();
    let skipped = skipped.map(|user| {
        assert!(!user.name.contains(char::is_control) && !user.why.contains(char::is_control));
        format!("{}: {}", user.name, user.why)
    });
    skipped
        .chain(found.notes.iter().map(ToString::to_string))
        .collect()
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let formats: Vec<&str> = UserFormat::names().collect();
    let at = usize::from(flags) % (formats.len() + 1);
    let format = formats
        .get(at)
        .map(|name| name.parse::<UserFormat>().expect("its name"));
    check(text, format);
    if text.contains(PLANTED_PASSWORD) {
        return;
    }
    // A user with a password in a well-formed document of each program.
    for text in [
        format!(
            r#"{{"accessKeys":[{{"id":"1","name":"a","password":"{PLANTED_PASSWORD}","port":{text}}}]}}"#
        ),
        format!(
            r#"{{"users":[{{"username":"a","proxies":{{"shadowsocks":{{"password":"{PLANTED_PASSWORD}"}}}},"expire":{text}}}]}}"#
        ),
        format!(
            r#"[{{"protocol":"shadowsocks","settings":{{"method":"aes-128-gcm","clients":[{{"email":"a","password":"{PLANTED_PASSWORD}","totalGB":{text}}}]}}}}]"#
        ),
        format!("name,password,quota\na,{PLANTED_PASSWORD},{text}"),
        format!("ss://aes-128-gcm:{PLANTED_PASSWORD}@h:1#a{text}"),
    ] {
        let told = check(&text, None);
        assert!(!told.contains(PLANTED_PASSWORD), "{told}");
    }
});
