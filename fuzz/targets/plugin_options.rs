//! The options of a plugin: `SS_PLUGIN_OPTIONS` itself, and the `plugin` of a URL.

#![no_main]

use adit_config::{Hop, HopKind, Plan, Plugin, Stage, link};
use adit_fuzz::{MinimalSources, split_flags};
use libfuzzer_sys::fuzz_target;
use options::parse_options;

/// The engine's module, without the engine.
#[path = "../../app/adit-engine/src/plugin/options.rs"]
mod options;

fn check_options(text: &str) {
    let Ok(options) = parse_options(text) else {
        // A text without escapes and duplicate keys always parses.
        assert!(text.contains(['\\', '=', ';']), "{text:?}");
        return;
    };
    let mut keys: Vec<&str> = options.iter().map(|(key, _)| key).collect();
    assert!(keys.iter().all(|key| !key.is_empty()));
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{keys:?}");
    let long = |(key, value): (&str, Option<&str>)| key.len() + value.map_or(0, str::len);
    assert!(options.iter().map(long).sum::<usize>() <= text.len());
    let written = options.to_string();
    assert_eq!(
        parse_options(&written).as_ref(),
        Ok(&options),
        "{written:?}"
    );
    // Values are not shown.
    let bare = text.split(';').filter(|item| !item.is_empty()).count();
    assert!(keys.len() <= bare);
}

/// Returns the plugin of a hop's URL.
fn plugin_of_url(url: &str) -> Option<Plugin> {
    let words = ["socks5://127.0.0.1:1080".to_owned(), url.to_owned()];
    let plan = Plan::from_words_with(&words, &MinimalSources).ok()?;
    match plan.routes.first()?.via.stages.first()? {
        Stage::Single(Hop::Server(server)) => match &server.kind {
            HopKind::Shadowsocks { plugin, .. } => plugin.clone(),
            _ => None,
        },
        _ => None,
    }
}

fuzz_target!(|input: &[u8]| {
    let (flags, input) = split_flags(input);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if flags & 1 == 0 {
        return check_options(text);
    }
    let url = format!("ss://aes-128-gcm:pw@a.test:1/?plugin={text}");
    if let (Some(read), Ok(canonical)) = (plugin_of_url(&url), link::canonical_url(&url)) {
        assert!(!read.program.is_empty());
        assert!(!read.program.contains('\0') && !read.options.contains('\0'));
        let again = plugin_of_url(&canonical);
        let again = again.unwrap_or_else(|| panic!("{canonical:?} has no plugin"));
        assert!(again == read, "{canonical:?}");
    }
});
