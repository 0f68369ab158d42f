//! Subscriptions: any text is a list of servers or a problem; a written list parses as the same.

#![no_main]

use adit_convert::sip008::{MAX_BODY, read_subscription, write_subscription};
use adit_convert::{AllowedPlugins, MAX_SERVERS};
use adit_fuzz::split_flags;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let allowed = ["obfs-local"];
    let plugins = match flags & 1 {
        0 => AllowedPlugins::none(),
        _ => AllowedPlugins::only(allowed.map(str::to_owned).to_vec()),
    };
    // The whole document, or a server in a well-formed document.
    let text = match flags & 2 {
        0 => text.to_owned(),
        _ => format!(r#"{{"version":1,"servers":[{text}]}}"#),
    };
    let found = match read_subscription(&text, &plugins) {
        Ok(found) => found,
        Err(problem) => {
            assert!(!problem.to_string().is_empty());
            return;
        }
    };
    assert!(found.servers.len() <= MAX_SERVERS && text.len() <= MAX_BODY);
    for server in &found.servers {
        assert!(server.server_port != 0);
        let plugin = server.plugin.as_ref().map(|plugin| plugin.name.as_str());
        let may = plugin.is_none_or(|name| flags & 1 != 0 && allowed.contains(&name));
        assert!(may, "it would start {plugin:?}");
    }
    for problem in &found.refused {
        assert!(!problem.to_string().is_empty());
    }
    assert!(found.bytes_remaining.is_none() || found.bytes_used.is_some());
    let body = write_subscription(&found.servers);
    let again = read_subscription(&body, &plugins).unwrap_or_else(|why| panic!("{why}\n{body}"));
    assert_eq!(again.refused, []);
    assert_eq!(again.servers, found.servers);
});
