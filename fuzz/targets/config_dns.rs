//! DNS servers and tables: any URL is parsed, or refused with a place in it; any table is a plan, or a list of problems
//! with places.

#![no_main]

use adit_config::DnsServer;
use adit_fuzz::check_config_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    // The first line is a URL, all lines are the content of a table.
    let url = text.lines().next().unwrap_or_default();
    match DnsServer::parse(url) {
        Ok(server) => {
            // Written without its path and its keys, which can be secrets.
            let written = server.to_string();
            let again = DnsServer::parse(&written);
            let again = again.unwrap_or_else(|flaw| panic!("written {written:?}: {flaw:?}"));
            assert_eq!(again.to_string(), written);
            assert!(!written.contains('?'), "{written:?}");
        }
        Err(flaw) => {
            assert!(!flaw.title.is_empty());
            let marked = url.get(flaw.span.start..flaw.span.end);
            assert!(marked.is_some(), "{flaw:?}");
        }
    }
    let quoted = url.escape_default();
    check_config_file(&format!(
        "[route.a]\nlisten = \"dns://127.0.0.1:5353\"\ndns = \"b\"\n[dns.b]\nserver = \"{quoted}\"\n"
    ));
    check_config_file(&format!(
        "[route.a]\nlisten = \"1080\"\n[run]\ndns = \"b\"\n[dns.b]\n{text}"
    ));
});
