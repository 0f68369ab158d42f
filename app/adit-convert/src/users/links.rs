//! `ss://` URLs, one in each line: each is a user with its secret, whose name is the text after `#`. Empty lines and lines
//! that begin with `#` are comments.

use adit_config::Endpoint;
use adit_config::text::SecretText;

use super::collector::{UserCollector, UserDraft};

/// Bytes of a line at most.
const MAX_LINE: usize = 16 << 10;

/// Returns true if the first line that is no comment is such a URL.
pub(super) fn is_list(text: &str) -> bool {
    lines(text).next().is_some_and(|(_, line)| is_link(line))
}

fn is_link(line: &str) -> bool {
    let scheme = line.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("ss"))
}

/// Returns the lines that are no comments, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().map(str::trim).enumerate();
    let numbered = numbered.map(|(at, line)| (at + 1, line));
    numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Reads the users.
pub(super) fn read(text: &str, found: &mut UserCollector<'_>) {
    for (number, line) in lines(text) {
        found.add(&format!("line {number}"), read_user(line));
    }
}

/// Reads the user of a line, or returns the name, as far as it is known, and the reason why there is none.
fn read_user(line: &str) -> Result<UserDraft, (String, String)> {
    let nameless = |why: &str| (String::new(), why.to_owned());
    if line.len() > MAX_LINE {
        return Err(nameless("the line is too long for a user"));
    }
    if !is_link(line) {
        return Err(nameless("it is not an `ss://` URL"));
    }
    // The title of a flaw says what is wrong, not what was written.
    let endpoint = Endpoint::parse(line).map_err(|flaw| nameless(&flaw.title))?;
    let name = endpoint.name.as_ref().map(|name| name.value.trim());
    let name = name.unwrap_or_default().to_owned();
    let (Some(method), Some(secret)) = (&endpoint.user, &endpoint.secret) else {
        return Err((name, "method and key are missing".to_owned()));
    };
    let SecretText::Literal(secret) = &secret.value else {
        // A list from elsewhere must not name files of this machine.
        let why = "a URL from elsewhere cannot name a file or a variable";
        return Err((name, why.to_owned()));
    };
    let mut user = UserDraft {
        name: name.clone(),
        ..UserDraft::default()
    };
    user.set_secret(&method.value, secret.expose())
        .map_err(|why| (name, why))?;
    Ok(user)
}

#[cfg(test)]
mod tests {
    use adit_config::text::Secret;

    use super::*;
    use crate::users::{UserExport, UserFormat, read_user_export};

    fn read(text: &str) -> UserExport {
        let found = read_user_export(text, "a", None).unwrap();
        assert_eq!(found.format, UserFormat::Links);
        found
    }

    #[test]
    fn each_url_is_a_user() {
        let found = read(
            "# users\n\n\
             ss://YWVzLTI1Ni1nY206cHc@192.0.2.1:8388/?plugin=obfs-local#anna\r\n\
             SS://2022-blake3-aes-128-gcm:AAAAAAAAAAAAAAAAAAAAAA%3D%3D%3AAQEBAQEBAQEBAQEBAQEBAQ%3D%3D@h.example:1#bert%20b\n\
             ss://chacha20-ietf-poly1305:a%3Ab@[2001:db8::1]:8388#cleo\n",
        );
        assert_eq!(found.skipped, []);
        let names: Vec<&str> = found.users.iter().map(|user| &*user.name).collect();
        assert_eq!(names, ["anna", "bert b", "cleo"]);
        assert_eq!(found.users[0].password, Some(Secret::from("pw")));
        // The key of the server before it is not the user's.
        let own = Some(Secret::from("AQEBAQEBAQEBAQEBAQEBAQ=="));
        assert_eq!(
            (&found.users[1].psk, &found.users[1].password),
            (&own, &None)
        );
        assert_eq!(found.users[2].password, Some(Secret::from("a:b")));
        // Networks see a login of SOCKS or HTTP in clear text.
        assert!(found.users.iter().all(|user| user.login.is_none()));
    }

    #[test]
    fn what_is_no_user_is_skipped_with_a_reason() {
        let long = format!("ss://aes-128-gcm:pw@h:1#{}", "a".repeat(MAX_LINE));
        for (line, name, says) in [
            ("vmess://abc#x", "line 2", "not an `ss://` URL"),
            ("ss://aes-128-gcm:pw@h:1", "line 2", "no name"),
            ("ss://aes-128-gcm:pw@h:1#first", "first", "has this name"),
            ("ss://aes-128-gcm:@/etc/passwd@h:1#x", "x", ""),
            ("ss://h.example:1#x", "x", "are missing"),
            ("ss://rc4-md5:pw@h:1#x", "x", "method `rc4-md5`"),
            ("ss://2022-blake3-aes-128-gcm:pw@h:1#x", "x", "its key"),
            ("ss://", "line 2", ""),
            (long.as_str(), "line 2", "too long"),
        ] {
            let found = read(&format!("ss://aes-128-gcm:first@h:1#first\n{line}\n"));
            assert_eq!(found.users.len(), 1, "{line}: {found:?}");
            let [skipped] = found.skipped.as_slice() else {
                panic!("{line}: {found:?}");
            };
            if name == "x" && says.is_empty() {
                // Where the grammar refuses it, it has no name yet.
                continue;
            }
            assert_eq!(skipped.name, name, "{line}");
            assert!(skipped.why.contains(says), "{line}: {}", skipped.why);
        }
    }
}
