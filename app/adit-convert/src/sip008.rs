//! SIP008: the list of servers that a provider publishes for its clients.
//!
//! [`read_subscription()`] takes the body of an answer, whatever it was fetched with, and trusts it as little as
//! anything from elsewhere: its length, its servers and the plugins it may start are bounded.
//! [`write_subscription()`] makes the body for others.

use adit_config::text::{Problem, Secret, SystemSources, escape, format_target};
use adit_wire::{Host, Target};
use serde::Serialize;

use crate::conversion_context::{AllowedPlugins, ConversionContext, ConvertOptions, MAX_SERVERS};
use crate::fields::ObjectFields;
use crate::json::{self, Json};
use crate::routes;
use crate::server_entry::{self, PluginEntry as Call, Transports};
use crate::shared_document::{QuotaUsage, host_text};
use crate::toml_output::RouteSet;

/// Bytes of a document at most.
pub const MAX_BODY: usize = 4 * 1024 * 1024;

/// The version that this is.
const VERSION: u64 = 1;

/// A server of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    /// The identifier of the server when the document changes; may be empty.
    pub id: String,
    /// The name for people; may be empty.
    pub remarks: String,
    /// Its address.
    pub server: Host,
    /// Its port; not 0.
    pub server_port: u16,
    /// Password, or base64 key (2022 edition).
    pub password: Secret,
    /// The method, one that this version knows.
    pub method: String,
    /// The SIP003 plugin it needs.
    pub plugin: Option<Plugin>,
}

/// A program that carries the bytes between client and server (SIP003).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugin {
    /// The name or path.
    pub name: String,
    /// `plugin_opts`; may be empty.
    pub options: String,
}

/// The content of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The servers that can be used, in the order of the document.
    pub servers: Vec<Server>,
    /// Why each of the others cannot.
    pub refused: Vec<Problem>,
    /// Bytes that the user has transferred.
    pub bytes_used: Option<u64>,
    /// Bytes that the user may still transfer.
    pub bytes_remaining: Option<u64>,
}

/// Reads the body of an answer. A server that cannot be used does not keep the others away.
///
/// A server whose plugin is not among `plugins` is refused: starting it would run a program that
/// someone else chose (SEC-E6).
pub fn read_subscription(
    text: &str,
    plugins: &AllowedPlugins,
) -> Result<Subscription, Box<Problem>> {
    const NAME: &str = "the subscription";
    if text.len() > MAX_BODY {
        let title = format!("{NAME} has more than {MAX_BODY} bytes");
        let help = "ask its provider for a shorter list";
        return Err(Box::new(Problem::without_place(title, help)));
    }
    let tree = json::parse_strict(text.strip_prefix('\u{feff}').unwrap_or(text), NAME)?;
    let wish = ConvertOptions::default();
    let mut clerk = ConversionContext::new(&wish, &SystemSources, "");
    let items = ObjectFields::of_object(&tree, String::new(), &mut clerk).map(|mut top| {
        let items = read_envelope(&mut top, &mut clerk);
        let used = top.whole_number("bytes_used", &mut clerk);
        let remaining = top.whole_number("bytes_remaining", &mut clerk);
        (items, used, remaining)
    });
    let Some((items, bytes_used, bytes_remaining)) = items.filter(|_| clerk.problems.is_empty())
    else {
        return Err(Box::new(clerk.problems.swap_remove(0)));
    };
    let mut found = Subscription {
        servers: Vec::new(),
        refused: Vec::new(),
        bytes_used,
        // It means something only beside the other (SIP008).
        bytes_remaining: bytes_remaining.filter(|_| bytes_used.is_some()),
    };
    for (i, value) in items.iter().enumerate() {
        if !server_entry::allows_another(i, &mut clerk) {
            return Err(Box::new(clerk.problems.swap_remove(0)));
        }
        let path = server_entry::item_path("servers", i);
        if let Some(server) = read_server(value, path.clone(), &mut clerk) {
            match server.to_entry(path.clone()).reason_unusable(Some(plugins)) {
                None => found.servers.push(server),
                Some(why) => found.refused.push(Problem::without_place(
                    format!("`{path}`: {why}"),
                    format!("the server is left out: {}", server.display_name()),
                )),
            }
        }
        found.refused.append(&mut clerk.problems);
    }
    Ok(found)
}

/// The body of an answer that offers these servers. To be sent as
/// `application/json; charset=utf-8`, over HTTPS alone: it holds their keys.
#[must_use]
pub fn write_subscription(servers: &[Server]) -> String {
    write_with_usage(servers, None)
}

/// Does the same with the user's usage.
pub(crate) fn write_with_usage(servers: &[Server], usage: Option<QuotaUsage>) -> String {
    let document = OutputDocument {
        version: VERSION,
        servers: servers.iter().map(OutputServer::from).collect(),
        bytes_used: usage.map(|usage| usage.used),
        bytes_remaining: usage.map(|usage| usage.remaining),
    };
    // Texts and numbers alone: nothing of it can fail.
    serde_json::to_string_pretty(&document).unwrap_or_default()
}

#[derive(Serialize)]
struct OutputDocument<'a> {
    version: u64,
    servers: Vec<OutputServer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_remaining: Option<u64>,
}

#[derive(Serialize)]
struct OutputServer<'a> {
    id: &'a str,
    remarks: &'a str,
    server: String,
    server_port: u16,
    password: &'a str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin_opts: Option<&'a str>,
}

impl<'a> From<&'a Server> for OutputServer<'a> {
    fn from(server: &'a Server) -> Self {
        let plugin = server.plugin.as_ref();
        Self {
            id: &server.id,
            remarks: &server.remarks,
            server: host_text(&server.server),
            server_port: server.server_port,
            password: server.password.expose(),
            method: &server.method,
            plugin: plugin.map(|plugin| plugin.name.as_str()),
            plugin_opts: plugin.map(|plugin| plugin.options.as_str()),
        }
    }
}

impl Server {
    /// As the other formats describe a server.
    fn to_entry(&self, path: String) -> server_entry::ServerEntry {
        server_entry::ServerEntry::from_untrusted(
            path,
            Some(self.display_name().to_owned()).filter(|label| !label.is_empty()),
            (self.server.clone(), self.server_port),
            self.method.clone(),
            self.password.expose(),
            self.plugin.as_ref().map(|plugin| Call {
                name: plugin.name.clone(),
                options: plugin.options.clone(),
                mode: Transports::TcpOnly,
            }),
        )
    }

    /// Returns its `ss://` link, without a plugin.
    pub(crate) fn link(&self) -> String {
        let user = escape::encode_part(&self.method);
        let secret = escape::encode_part(self.password.expose());
        let server = format_target(&Target::new(self.server.clone(), self.server_port));
        format!("ss://{user}:{secret}@{server}")
    }

    pub(crate) fn display_name(&self) -> &str {
        if self.remarks.is_empty() {
            &self.id
        } else {
            &self.remarks
        }
    }
}

/// Reads a whole document on its way to a configuration.
pub(super) fn convert_document(tree: &Json, clerk: &mut ConversionContext<'_>) -> RouteSet {
    let Some(mut top) = ObjectFields::of_object(tree, String::new(), clerk) else {
        return RouteSet::default();
    };
    let items = read_envelope(&mut top, clerk);
    convert_list(items, clerk)
}

/// Reads the list of a document on its way to a configuration.
pub(super) fn convert_list(items: &[Json], clerk: &mut ConversionContext<'_>) -> RouteSet {
    let mut servers = Vec::new();
    let mut faults = Vec::new();
    for (i, value) in items.iter().enumerate() {
        if !server_entry::allows_another(i, clerk) {
            break;
        }
        let path = server_entry::item_path("servers", i);
        let before = clerk.problems.len();
        match read_server(value, path.clone(), clerk) {
            Some(server) => servers.push(server.to_entry(path)),
            None => faults.extend(
                clerk
                    .problems
                    .drain(before..)
                    .map(|why| (path.clone(), why)),
            ),
        }
    }
    for (path, why) in faults {
        // As long as there is another, a server that cannot be read keeps none away.
        if servers.is_empty() {
            clerk.add_problem(why);
        } else {
            clerk.add_note(path, format!("left out: {}", why.title));
        }
    }
    routes::client_of_servers(servers, "a subscription", clerk)
}

fn read_envelope<'j>(top: &mut ObjectFields<'j>, clerk: &mut ConversionContext<'_>) -> &'j [Json] {
    let version = top.whole_number("version", clerk);
    if let Some(version) = version.filter(|version| *version != VERSION) {
        let title = format!("`version` is {version}, which is not a known version of SIP008");
        let help = format!("adit reads version {VERSION}");
        clerk.add_problem(Problem::without_place(title, help));
    }
    if !top.has_field("servers") {
        let help = "a SIP008 document has a list of `servers`";
        clerk.add_problem(Problem::without_place("`servers` is missing", help));
    }
    let items = top.list_field("servers", clerk);
    if items.len() > MAX_SERVERS {
        server_entry::allows_another(items.len(), clerk);
    }
    items
}

/// One server; fields that are not known are ignored (SIP008).
fn read_server(value: &Json, path: String, clerk: &mut ConversionContext<'_>) -> Option<Server> {
    let mut fields = ObjectFields::of_object(value, path, clerk)?;
    let address = fields.string_field("server", clerk);
    let port = fields.port_field("server_port", clerk);
    let password = fields.string_field("password", clerk);
    let method = fields.string_field("method", clerk);
    for (name, missing) in [
        ("server", address.is_none()),
        (
            "server_port",
            port.is_none() && !fields.has_field("server_port"),
        ),
        ("method", method.is_none()),
    ] {
        if missing {
            let title = format!("`{}` is missing", fields.field_path(name));
            clerk.add_problem(Problem::without_place(title, "the server is left out"));
        }
    }
    let (host, _) = server_entry::parse_host(address?, &fields.field_path("server"), clerk)?;
    let plugin = Call::read_fields(&mut fields, clerk);
    let id = fields.string_field("id", clerk).unwrap_or_default();
    let remarks = fields.string_field("remarks", clerk).unwrap_or_default();
    Some(Server {
        id: id.to_owned(),
        remarks: remarks.to_owned(),
        server: host,
        server_port: port?,
        password: Secret::from(password.unwrap_or_default()),
        method: method?.to_owned(),
        plugin: plugin.map(|plugin| Plugin {
            name: plugin.name,
            options: plugin.options,
        }),
    })
}
