//! The command lines of shadowsocks-libev and shadowsocksr-libev, as fields of the JSON
//! object that their files hold: over those of a file, or alone.

use std::path::Path;

use adit_config::text::{Problem, SystemSources, Warning, WarningKind, read_file};
use adit_config::{MAX_FILE_LEN, Plan};
use adit_wire::Role;
use zeroize::Zeroizing;

use crate::conversion_context::{ConversionContext, ConvertOptions};
use crate::fields::ObjectFields;
use crate::json::Json;
use crate::notes::Note;
use crate::omitted_fields::OMITTED_FIELDS;
use crate::{finish_conversion, is_json, json, shadowsocks_json};

/// The method of a command line of shadowsocks-libev that names none.
pub const DEFAULT_METHOD: &str = "chacha20-ietf-poly1305";

/// Fields of the classic JSON object, in the order in which they were typed.
#[derive(Debug, Default)]
pub struct CommandLineFields(Vec<(&'static str, Json)>);

impl CommandLineFields {
    /// A text, if there is one.
    pub fn add_string(&mut self, name: &'static str, value: Option<&str>) {
        let json = |text: &str| Json::Text(Zeroizing::new(text.to_owned()));
        self.0.extend(value.map(|value| (name, json(value))));
    }

    /// A list of texts, if there are any.
    pub fn add_strings(&mut self, name: &'static str, values: &[String]) {
        if !values.is_empty() {
            let json = |text: &String| Json::Text(Zeroizing::new(text.clone()));
            let list = Json::List(values.iter().map(json).collect());
            self.0.push((name, list));
        }
    }

    /// A number, if there is one.
    pub fn add_number(&mut self, name: &'static str, value: Option<u64>) {
        self.0.extend(value.map(|value| (name, Json::Whole(value))));
    }

    /// True, if it was said.
    pub fn add_flag(&mut self, name: &'static str, said: bool) {
        if said {
            self.0.push((name, Json::Bool(true)));
        }
    }
}

/// The programs whose command lines are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandLineProgram {
    /// `ss-local`, `ss-tunnel`
    Client,
    /// `ss-redir`
    Redirector,
    /// `ss-server`
    Server,
    /// `ssr-local`
    SsrClient,
    /// `ssr-server`
    SsrServer,
}

impl CommandLineProgram {
    const fn is_server(self) -> bool {
        matches!(self, Self::Server | Self::SsrServer)
    }

    const fn is_ssr(self) -> bool {
        matches!(self, Self::SsrClient | Self::SsrServer)
    }
}

/// The plan of a command line, and of the file that it names. What was typed wins. Notes are what
/// could not be carried over.
pub fn plan_from_command_line(
    typed: CommandLineFields,
    config: Option<&Path>,
    program: CommandLineProgram,
) -> Result<(Plan, Vec<Note>), Vec<Problem>> {
    let wish = ConvertOptions {
        role: Some(match program.is_server() {
            true => Role::Server,
            false => Role::Client,
        }),
        ..ConvertOptions::default()
    };
    let name = config.map_or_else(
        || "the command line".to_owned(),
        |path| path.display().to_string(),
    );
    let mut clerk = ConversionContext::new(&wish, &SystemSources, &name);
    let (mut entries, exposed) = match config {
        Some(path) => read_entries(path, &name)?,
        None => (Vec::new(), false),
    };
    override_fields(&mut entries, typed, program);
    let (format, shape) = shadowsocks_json::convert_document(&Json::Object(entries), &mut clerk);
    let converted = finish_conversion(&name, format, &shape, clerk)?;
    let mut plan = Plan::from_toml(&converted.toml, &format!("{name} (converted)"))?;
    if exposed {
        plan.warnings.push(readable_secret_warning(&name));
    }
    Ok((plan, converted.notes))
}

/// The fields of an object.
type Entries = Vec<(String, Json)>;

/// The fields of a file, and whether others can read it.
fn read_entries(path: &Path, name: &str) -> Result<(Entries, bool), Vec<Problem>> {
    let wrong = |title: String, help: &str| vec![Problem::without_place(title, help)];
    let read = read_file(path, MAX_FILE_LEN).map_err(|why| {
        wrong(
            format!("cannot read `{name}`: {why}"),
            "-c names a JSON file of shadowsocks-libev or ShadowsocksR",
        )
    })?;
    let text = read.text.strip_prefix('\u{feff}').unwrap_or(&read.text);
    let tree = json::parse_json5(text, name).map_err(|problem| vec![*problem])?;
    match tree {
        Json::Object(entries) if is_json(text, name) => Ok((entries, read.readable_by_others)),
        other => Err(wrong(
            format!("`{name}` is {}, not one object", other.kind_name()),
            "-c names a JSON file of shadowsocks-libev or ShadowsocksR; `adit run -c` reads others",
        )),
    }
}

/// Puts what was typed in the place of what the file says, and the defaults of the program where
/// neither says anything.
fn override_fields(entries: &mut Entries, typed: CommandLineFields, program: CommandLineProgram) {
    for (name, value) in typed.0 {
        entries.retain(|(old, _)| old != name);
        entries.push((name.to_owned(), value));
    }
    let mut default = |name: &str, value: &str| {
        if !entries.iter().any(|(old, _)| old == name) {
            let text = Json::Text(Zeroizing::new(value.to_owned()));
            entries.push((name.to_owned(), text));
        }
    };
    // Files of the other programs have no mode: there UDP is always served.
    default("mode", "tcp_only");
    if program.is_ssr() {
        default("protocol", "origin");
    } else {
        default("method", DEFAULT_METHOD);
    }
    if program == CommandLineProgram::Redirector {
        make_transparent(entries);
    }
}

/// Makes of the local port one that a firewall turns traffic to.
fn make_transparent(entries: &mut Entries) {
    let mut local = vec![(
        "protocol".to_owned(),
        Json::Text(Zeroizing::new("redir".to_owned())),
    )];
    let mut tproxy = false;
    entries.retain_mut(|(name, value)| match name.as_str() {
        "local_address" | "local_port" => {
            let value = core::mem::replace(value, Json::Null);
            local.push((core::mem::take(name), value));
            false
        }
        "tcp_tproxy" => {
            tproxy = *value == Json::Bool(true);
            false
        }
        _ => true,
    });
    if tproxy {
        let way = Json::Text(Zeroizing::new("tproxy".to_owned()));
        local.push(("tcp_redir".to_owned(), way));
    }
    entries.push(("locals".to_owned(), Json::List(vec![Json::Object(local)])));
}

pub(super) fn readable_secret_warning(name: &str) -> Warning {
    let title = format!("every user of this machine can read the secrets in `{name}`");
    Warning {
        kind: WarningKind::ReadableSecret,
        about: Problem::without_place(title, format!("chmod 600 {name}")),
    }
}

/// The settings in a file for a manager of servers.
#[derive(Default)]
pub struct ManagerFile {
    /// Where the servers listen.
    pub hosts: Vec<String>,
    /// Their method.
    pub method: Option<String>,
    /// The transport: `tcp_only`, `udp_only` or `tcp_and_udp`.
    pub mode: Option<String>,
    /// Their plugin and its options.
    pub plugin: Option<(String, String)>,
    /// Where commands come in.
    pub manager_address: Option<String>,
    /// The first servers: their ports and passwords.
    pub ports: Vec<(u16, Zeroizing<String>)>,
}

/// Reads the file of a manager. Notes are what it says besides.
pub fn read_manager_file(path: &Path) -> Result<(ManagerFile, Vec<Note>), Vec<Problem>> {
    let name = path.display().to_string();
    let (entries, _) = read_entries(path, &name)?;
    let wish = ConvertOptions::default();
    let mut clerk = ConversionContext::new(&wish, &SystemSources, &name);
    let tree = Json::Object(entries);
    let mut said = ManagerFile::default();
    if let Some(mut top) = ObjectFields::of_object(&tree, String::new(), &mut clerk) {
        let hosts = top.strings_field("server", &mut clerk);
        said.hosts = hosts.into_iter().map(str::to_owned).collect();
        let mut text = |name| top.string_field(name, &mut clerk).map(str::to_owned);
        said.method = text("method");
        said.mode = text("mode");
        said.manager_address = text("manager_address");
        said.plugin = text("plugin").map(|name| (name, text("plugin_opts").unwrap_or_default()));
        if let Some(mut ports) = top.object_field("port_password", &mut clerk) {
            for (port, password) in ports.take_all() {
                let path = ports.field_path(port);
                let found = shadowsocks_json::read_port_password(
                    port,
                    password.as_str(),
                    &path,
                    &mut clerk,
                );
                let own = found.map(|(port, text)| (port, Zeroizing::new(text.to_owned())));
                said.ports.extend(own);
            }
        }
        top.note_unread(OMITTED_FIELDS, &mut clerk);
    }
    match clerk.problems.is_empty() {
        true => Ok((said, clerk.notes)),
        false => Err(clerk.problems),
    }
}
