//! `ss://` and `ssr://` links: one, or a list, in plain text or folded into base64 as subscriptions are.

use adit_config::Endpoint;
use adit_config::text::{Problem, SecretText, base64};

use crate::conversion_context::{ConversionContext, Format, SUPPORTED_FORMATS};
use crate::json::Json;
use crate::routes;
use crate::server_entry::{self, PluginEntry, ServerEntry, Transports, item_path};
use crate::ssr::SsrSettings;
use crate::toml_output::RouteSet;

/// Reads text that is not JSON.
pub(super) fn read_text(text: &str, clerk: &mut ConversionContext<'_>) -> (Format, RouteSet) {
    if text.contains("://") {
        return read_lines(text, clerk);
    }
    let packed: String = text.split_whitespace().collect();
    match base64::decode_link(&packed) {
        Some(unfolded) if unfolded.contains("://") => read_lines(&unfolded, clerk),
        _ => {
            clerk.add_problem(Problem::without_place(
                "neither JSON nor `ss://` links",
                SUPPORTED_FORMATS,
            ));
            (Format::Links, RouteSet::default())
        }
    }
}

/// Reads a list of JSON.
pub(super) fn read_list(items: &[Json], clerk: &mut ConversionContext<'_>) -> (Format, RouteSet) {
    let mut texts = Vec::new();
    for (i, value) in items.iter().enumerate() {
        match value.as_str() {
            Some(text) => texts.push((item_path("", i), text)),
            None => clerk.report_wrong_type(&item_path("", i), "a link", value),
        }
    }
    read_links(texts.into_iter(), clerk)
}

fn read_lines(text: &str, clerk: &mut ConversionContext<'_>) -> (Format, RouteSet) {
    let lines = text.lines().enumerate();
    read_links(
        lines.map(|(i, line)| (format!("line {}", i + 1), line)),
        clerk,
    )
}

fn read_links<'t>(
    links: impl Iterator<Item = (String, &'t str)>,
    clerk: &mut ConversionContext<'_>,
) -> (Format, RouteSet) {
    let mut servers: Vec<ServerEntry> = Vec::new();
    let mut format = Format::Links;
    let mut faults = Vec::new();
    for (path, link) in links {
        let link = link.trim();
        if link.is_empty() || link.starts_with('#') {
            continue;
        }
        if !server_entry::allows_another(servers.len() + faults.len(), clerk) {
            break;
        }
        let scheme = link.split_once("://").map_or("", |(scheme, _)| scheme);
        let scheme = scheme.to_ascii_lowercase();
        if scheme == "ssconf" {
            clerk.add_problem(dynamic_key_problem(&path, link));
            continue;
        }
        if link.starts_with("MAX=") {
            clerk.add_note(path, "a random choice is not made: all servers are a group");
            continue;
        }
        if scheme != "ss" && scheme != "ssr" {
            faults.push((path, "not an `ss://` link".to_owned()));
            continue;
        }
        match read_link(&path, link, &mut format, clerk) {
            Ok(server) => servers.push(server),
            Err(why) => faults.push((path, why)),
        }
    }
    for (path, why) in faults {
        if servers.is_empty() {
            let help = "a link is written `ss://METHOD:KEY@HOST:PORT`";
            let title = format!("`{path}`: {why}");
            clerk.add_problem(Problem::without_place(title, help));
        } else {
            clerk.add_note(path, format!("left out: {why}"));
        }
    }
    (
        format,
        routes::client_of_servers(servers, "a list of links", clerk),
    )
}

/// A dynamic access key: where a document is, not what it says.
fn dynamic_key_problem(path: &str, link: &str) -> Problem {
    let behind = link.split_once("://").map_or("", |(_, behind)| behind);
    let host = behind
        .split(['/', '?', '#', '@'])
        .next()
        .unwrap_or_default();
    Problem::without_place(
        format!("`{path}`: an `ssconf` address names a document that has to be fetched"),
        format!(
            "fetch it over HTTPS from `{host}` (`https://` in the place of `ssconf://`), and \
             convert what comes back"
        ),
    )
}

fn read_link(
    path: &str,
    link: &str,
    format: &mut Format,
    clerk: &mut ConversionContext<'_>,
) -> Result<ServerEntry, String> {
    // The title of a flaw says what is wrong, not what was written.
    let endpoint = Endpoint::parse(link).map_err(|flaw| flaw.title)?;
    let (Some(method), Some(secret)) = (&endpoint.user, &endpoint.secret) else {
        return Err("method and key are missing".to_owned());
    };
    let (Some(host), Some(port)) = (&endpoint.host, &endpoint.port) else {
        return Err("host or port is missing".to_owned());
    };
    if port.value == 0 {
        return Err("a server has no port 0".to_owned());
    }
    let SecretText::Literal(secret) = &secret.value else {
        // Someone else's link must not name files of this machine.
        return Err("a link from elsewhere cannot name a file or a variable".to_owned());
    };
    if endpoint.scheme.value == "ssr" {
        let own = ["protocol", "protocol_param", "obfs", "obfs_param"];
        for pair in &endpoint.params {
            let key = pair.key.value.as_str();
            if !own.contains(&key) {
                clerk.add_note(path, format!("key `{key}` is left out"));
            }
        }
        let server = ServerEntry::from_untrusted(
            path.to_owned(),
            endpoint.name.as_ref().map(|name| name.value.clone()),
            (host.value.clone(), port.value),
            method.value.clone(),
            secret.expose(),
            None,
        );
        return Ok(ServerEntry {
            ssr: Some(SsrSettings::from_link(&endpoint)),
            ..server
        });
    }
    let mut plugin = None;
    let mut mode = Transports::TcpOnly;
    for pair in &endpoint.params {
        let value = pair.value.value.as_str();
        match pair.key.value.as_str() {
            "plugin" if !value.is_empty() => plugin = Some(value),
            "plugin_mode" if value == "tcp_and_udp" => mode = Transports::TcpAndUdp,
            "plugin_mode" if value == "udp_only" => mode = Transports::UdpOnly,
            "outline" => *format = Format::Outline,
            "prefix" => clerk.add_note(path, "bytes before the salt (`prefix`) are not written"),
            "plugin" | "plugin_mode" => {}
            other => clerk.add_note(path, format!("key `{other}` is left out")),
        }
    }
    let plugin = plugin.map(|text| {
        let (name, options) = text.split_once(';').unwrap_or((text, ""));
        PluginEntry {
            name: name.to_owned(),
            options: options.to_owned(),
            mode,
        }
    });
    Ok(ServerEntry::from_untrusted(
        path.to_owned(),
        endpoint.name.as_ref().map(|name| name.value.clone()),
        (host.value.clone(), port.value),
        method.value.clone(),
        secret.expose(),
        plugin,
    ))
}
