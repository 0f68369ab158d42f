//! Redacts the secrets of a line.
//!
//! The text may be wrong in any way, so it is not parsed: every place where a secret could be is
//! redacted, rather too much than too little.

use adit_wire::substr;

use crate::scheme::scheme_table::{begins_file_path, find_dialect, is_public_key};
use crate::scheme::ss_share_link;
use crate::text::{Document, LineIndex, Origin, Span};

/// Keys of a configuration file whose values contain no secrets except those of URLs.
const PLAIN: [&str; 14] = [
    "listen", "via", "rules", "match", "and", "resolve", "file", "format", "category", "refresh",
    "sha256", "dns", "server", "cache",
];
/// Keys of a table of next servers whose values contain no secrets.
const PLAIN_NEXT: [&str; 3] = ["server", "port", "name"];

/// Returns a document whose lines are shown without their secrets.
///
/// `lines` belongs to this text alone.
pub(crate) const fn redacting_document<'a>(
    origin: &'a Origin,
    text: &'a str,
    lines: &'a LineIndex,
) -> Document<'a> {
    Document {
        origin,
        text,
        lines,
        secrets: secret_ranges,
    }
}

/// Returns the ranges of a line to redact: in order, not adjacent. `heading` is the heading of the table that contains
/// the line.
fn secret_ranges(line: &str, heading: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let whole = Span::new(0, line.len());
    if !line.trim_start().starts_with(['[', '#'])
        && let Some(plain) = plain_keys_below_route(heading)
    {
        let all = Span::new(0, line.trim_end().len());
        match secret_value(line, whole, plain, false) {
            Some(value) => found.push(value),
            None if line.contains('=') => {}
            None => found.push(all),
        }
        found.retain(|span| span.start < span.end);
        return found;
    }
    let inline = heading.trim_end() == "[route]";
    let mut from = 0;
    while let Some(at) = line.get(from..).and_then(|rest| rest.find("://")) {
        let colon = from + at;
        let head = substr(line, ..colon);
        let scheme = scheme_before(head);
        if let Some(value) = secret_value(line, Span::new(from, colon), &PLAIN, inline) {
            found.push(value);
            return found;
        }
        let body = colon + 3;
        let end = url_end(line, head, scheme, body);
        redact_url(scheme, substr(line, body..end), |span| {
            found.push(span.shifted_by(body));
        });
        from = end;
    }
    found.extend(secret_value(
        line,
        Span::new(from, line.len()),
        &PLAIN,
        inline,
    ));
    found.retain(|span| span.start < span.end);
    found
}

/// Returns the keys with plain values in a table below that of a route, `[route.NAME.TABLE]`.
fn plain_keys_below_route(heading: &str) -> Option<&'static [&'static str]> {
    let mut quoted = false;
    let dots = heading.chars().filter(|c| {
        quoted ^= matches!(c, '"' | '\'');
        *c == '.' && !quoted
    });
    if dots.count() < 2 {
        return None;
    }
    Some(if heading.starts_with("[[") {
        &PLAIN_NEXT
    } else {
        &[]
    })
}

/// Returns the range from the value of the first key in `within` that is not plain to the end of the
/// line. With `inline`, a table in braces is a route, not a value.
fn secret_value(line: &str, within: Span, plain: &[&str], inline: bool) -> Option<Span> {
    let text = substr(line, within.start..within.end);
    let at = text.match_indices('=').map(|(at, _)| at).find(|at| {
        let before = substr(text, ..*at);
        let behind = substr(text, at + 1..);
        let key = before.rsplit([',', '{', '[']).next().unwrap_or_default();
        let first = within.start == 0 && !before.contains('=');
        let table = inline && first && behind.trim_start().starts_with('{');
        !table && !plain.contains(&key.trim())
    })?;
    let behind = substr(line, within.start + at + 1..);
    let blank = behind.len() - behind.trim_start().len();
    Some(Span::new(
        within.start + at + 1 + blank,
        line.trim_end().len(),
    ))
}

/// Returns the scheme at the end of the text before `://`.
fn scheme_before(head: &str) -> &str {
    let start = head
        .rfind(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '-')))
        .map_or(0, |i| {
            i + head
                .get(i..)
                .and_then(|s| s.chars().next())
                .map_or(1, char::len_utf8)
        });
    substr(head, start..)
}

/// Returns the end of the URL that begins with `scheme`: the closing quotation mark if there is an
/// opening one before it, otherwise the end of the line.
fn url_end(line: &str, head: &str, scheme: &str, body: usize) -> usize {
    let before = head.strip_suffix(scheme).unwrap_or(head);
    let Some(quote) = before
        .chars()
        .next_back()
        .filter(|c| matches!(c, '"' | '\''))
    else {
        return line.len();
    };
    let mut escaped = false;
    for (i, c) in substr(line, body..).char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' && quote == '"' {
            escaped = true;
        } else if c == quote && value_ends(substr(line, body + i + 1..)) {
            return body + i;
        }
    }
    line.len()
}

/// True if this text can follow a value. A quotation mark before any other text is part of the secret.
fn value_ends(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with([',', ']', '}', '#'])
}

/// Redacts the part after `://`.
fn redact_url(scheme: &str, body: &str, mut cover: impl FnMut(Span)) {
    // With an unknown scheme, the user part or the whole authority could be base64 of a secret.
    let syntax = find_dialect(scheme).map(|scheme| &scheme.syntax);
    let method = syntax.map_or(Some(ss_share_link::is_method as fn(&str) -> bool), |s| {
        s.is_method
    });
    let cut = body.find(['?', '#']).unwrap_or(body.len());
    let authority = substr(body, ..cut);
    // In a secret with a raw `?` or `#`, the separator comes after the cut.
    let separator = authority.rfind('@').or_else(|| {
        body.match_indices('@')
            .filter(|(i, _)| !body.get(..*i).is_some_and(begins_file_path))
            .map(|(i, _)| i)
            .next_back()
    });
    let mut query_from = cut;
    if let Some(at) = separator {
        let user = substr(body, ..at);
        match user.find(':') {
            _ if syntax.is_some_and(|syntax| syntax.secret_only) => cover(Span::new(0, at)),
            Some(colon) => cover(Span::new(colon + 1, at)),
            None if method.is_some_and(|is_method| !is_method(user)) => cover(Span::new(0, at)),
            None => {}
        }
        query_from = query_from.max(at);
    } else if let Some(colon) = authority.find(':') {
        let port = substr(authority, colon + 1..);
        let digits = port.bytes().take_while(u8::is_ascii_digit).count();
        let mut behind = substr(port, digits..);
        if syntax.is_some_and(|syntax| syntax.port_range)
            && let Some(last) = behind.strip_prefix('-')
        {
            behind = last.trim_start_matches(|c: char| c.is_ascii_digit());
        }
        let is_port = if method.is_some() {
            digits <= 5 && matches!(behind, "" | "/")
        } else {
            behind.is_empty() || behind.starts_with('/')
        };
        if !is_port && !authority.starts_with('[') {
            cover(Span::new(colon + 1, cut));
        }
    } else if method.is_some() {
        cover(Span::new(0, cut));
    }
    // A raw `#` in a value: the part after it can be a user with a password.
    if syntax.is_some_and(|syntax| syntax.hash_in_values)
        && let Some((query, name)) = body.split_once('#')
        && name.contains(':')
    {
        redact_query(query, query_from, &mut cover);
        return cover(Span::of_part(query.len() + 1, name));
    }
    redact_query(body, query_from, &mut cover);
}

/// Redacts the query of `body`, which is searched for from `query_from` on.
fn redact_query(body: &str, query_from: usize, mut cover: impl FnMut(Span)) {
    let rest = substr(body, query_from..);
    if let Some(mark) = rest.find('?') {
        redact_values(substr(rest, mark + 1..), |span| {
            cover(span.shifted_by(query_from + mark + 1));
        });
    }
}

/// Redacts the values of keys that are in no table, and of those that can hold a secret.
fn redact_values(query: &str, mut cover: impl FnMut(Span)) {
    let query = query.split('#').next().unwrap_or_default();
    let mut at = 0;
    for pair in query.split('&') {
        if let Some((key, value)) = pair.split_once('=')
            && !value.starts_with(['@', '$'])
            && !is_public_key(key)
        {
            let start = at + key.len() + 1;
            cover(Span::of_part(start, value));
        }
        at += pair.len() + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::redact_line;

    fn redact(line: &str, meant: Span, heading: &str) -> (String, (usize, usize)) {
        redact_line(line, meant, &secret_ranges(line, heading))
    }

    fn show(line: &str) -> String {
        redact(line, Span::new(0, 0), "[route.a]").0
    }

    #[test]
    fn covers_secrets_and_nothing_else() {
        for (line, shown) in [
            ("socks5://u:pw@h:1080", "socks5://u:***@h:1080"),
            ("socks5://u@h:1080", "socks5://u@h:1080"),
            ("mixed://[::1]:1080?udp=true", "mixed://[::1]:1080?udp=true"),
            ("tcp://:53/8.8.8.8:53", "tcp://:53/8.8.8.8:53"),
            ("ss://YWJj@h:1#n", "ss://***@h:1#n"),
            ("ss://YWJj#n", "ss://***#n"),
            ("ss://m:a/b+c==@h:1", "ss://m:***@h:1"),
            ("ss://m:AAEC", "ss://m:***"),
            ("ss://h:8388/?plugin=a%3Bkey%3Db", "ss://h:8388/?plugin=***"),
            ("ssr://YWJj", "ssr://***"),
            (
                "ssr://m:p@h:1?protocol_param=1:x&obfs=a",
                "ssr://m:***@h:1?protocol_param=***&obfs=a",
            ),
            (
                "ssr://none@h:1?protocol_param=64#1:x",
                "ssr://none@h:1?protocol_param=***#***",
            ),
            ("socks5://u:p?w@h:1", "socks5://u:***@h:1"),
            ("socks5://u:p#w@h:1", "socks5://u:***@h:1"),
            ("mixed://:1080?users=@f", "mixed://:1080?users=@f"),
            ("mixed://:1080?users=a:b", "mixed://:1080?users=***"),
            (
                "http://:1?passwd=b&udp=true",
                "http://:1?passwd=***&udp=true",
            ),
            (
                r#"via = [["ss://m:k@a:1", 'ss://Zm9v@b:2'], "http://h:1"]"#,
                r#"via = [["ss://m:***@a:1", 'ss://***@b:2'], "http://h:1"]"#,
            ),
            (
                "ss://aes-256-gcm@h:1?users=@u",
                "ss://aes-256-gcm@h:1?users=@u",
            ),
            ("ss://none:x?plugin=p@h:1", "ss://none:***@h:1"),
            (r#"password = "x""#, "password = ***"),
            (r#"listen = "x""#, r#"listen = "x""#),
            (r#"listne = "x""#, "listne = ***"),
            (r#"users = { a = "x", b = "y" }"#, "users = ***"),
            (r#"  a = "x=","#, "  a = ***"),
            (r#"users.via = "x""#, "users.via = ***"),
            (
                r#"{ match = ["a"], via = [] },"#,
                r#"{ match = ["a"], via = [] },"#,
            ),
            (
                r#"listen = "http://h:1", users = { a = "x" }"#,
                r#"listen = "http://h:1", users = ***"#,
            ),
            (r#"a = { listen = "http://h:1" }"#, "a = ***"),
            ("", ""),
            ("://", "://"),
            ("\u{e4}://x:y@z", "\u{e4}://x:***@z"),
        ] {
            assert_eq!(show(line), shown, "{line}");
        }
    }

    #[test]
    fn the_caret_follows() {
        let line = "socks5://u:longpassword@h:1x";
        let port = Span::new(26, 28);
        assert_eq!(&line[26..28], "1x");
        let (shown, (start, len)) = redact(line, port, "");
        assert_eq!(&shown[start..start + len], "1x");
        // A place inside the cover is the cover.
        let (shown, (start, len)) = redact(line, Span::new(13, 15), "");
        assert_eq!(&shown[start..start + len], "***");
        // The end of the line.
        assert_eq!(redact("ab", Span::new(2, 2), "").1, (2, 0));
    }

    #[test]
    fn below_a_route_all_is_secret_but_what_is_known_not_to_be() {
        let users = |line| redact(line, Span::new(0, 0), "[route.a.users]").0;
        for (line, shown) in [
            (r#"listen = "x""#, "listen = ***"),
            (r#"a = "ss://m:k@h:1""#, "a = ***"),
            ("x", "***"),
            ("[route.a.users]", "[route.a.users]"),
            ("# x", "# x"),
            ("", ""),
        ] {
            assert_eq!(users(line), shown, "{line}");
        }
        // With a slip in it, with the end missing, and with a dot in a name.
        for heading in [
            "[route.a.usres]",
            "[route.a.users",
            r#"[route."a.b".users]"#,
        ] {
            assert_eq!(redact("via = 1", Span::new(0, 0), heading).0, "via = ***");
        }
        assert_eq!(
            redact("via = 1", Span::new(0, 0), r#"[route."a.b"]"#).0,
            "via = 1"
        );
        let inline = r#"a = { listen = "http://h:1", users = { via = "x" } }"#;
        assert_eq!(
            redact(inline, Span::new(0, 0), "[route]").0,
            r#"a = { listen = "http://h:1", users = ***"#
        );
        let next = |line| redact(line, Span::new(0, 0), "[[route.a.relay]]").0;
        assert_eq!(next(r#"server = "x""#), r#"server = "x""#);
        assert_eq!(next(r#"psk = "x""#), "psk = ***");
    }
}
