//! State that all readers of a document share: the caller's options, and the results.

use core::fmt;
use std::path::{Path, PathBuf};

use adit_config::text::{FileText, Problem, Sources};
use adit_wire::Role;

use crate::notes::Note;

/// Servers in one document at most.
pub const MAX_SERVERS: usize = 10_000;

/// Plugins that a document from elsewhere (a subscription, a list of links) may start (SEC-E6).
/// A configuration of one's own may start any.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedPlugins(Vec<String>);

/// Options of the caller.
#[derive(Debug, Clone, Default)]
pub struct ConvertOptions {
    /// Which end the configuration is for: a local proxy that uses servers, or a server. `None`
    /// finds out from the fields that are there, and says so in a note.
    pub role: Option<Role>,
    /// Plugins that links and subscriptions may name.
    pub plugins: AllowedPlugins,
    /// The group or server of a subscription that requests use; `None` is the first group that a user selects from,
    /// or else all servers.
    pub select: Option<String>,
}

/// The recognised format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The JSON object of shadowsocks-libev, which others read too.
    Libev,
    /// JSON5 of shadowsocks-rust.
    Rust,
    /// JSON of shadowsocks-go.
    Go,
    /// A SIP008 document.
    Sip008,
    /// An access key of Outline: a link, or what stands behind an `ssconf` address.
    Outline,
    /// JSON of ShadowsocksR: one server, or the `configs` of its window program.
    Ssr,
    /// `ss://` and `ssr://` links, in plain text or base64.
    Links,
    /// YAML of Clash and mihomo.
    Clash,
    /// JSON of sing-box.
    SingBox,
    /// JSON of Xray and V2Ray.
    Xray,
}

/// State that the readers share: the caller's options, where files are, and what they found.
pub(crate) struct ConversionContext<'a> {
    pub(crate) options: &'a ConvertOptions,
    pub(crate) sources: &'a dyn Sources,
    pub(crate) base: PathBuf,
    pub(crate) notes: Vec<Note>,
    pub(crate) problems: Vec<Problem>,
}

/// The formats that can be read, for messages about others.
pub(crate) const SUPPORTED_FORMATS: &str = "adit reads the JSON of shadowsocks-libev, -rust and -go, of ShadowsocksR, \
                     sing-box and Xray, the YAML of Clash, SIP008, and `ss://` and `ssr://` links";

/// Notes, and problems, that are kept at most: no one reads more.
const MAX_MESSAGES: usize = 200;

impl<'a> ConversionContext<'a> {
    pub(crate) fn new(options: &'a ConvertOptions, sources: &'a dyn Sources, name: &str) -> Self {
        let base = Path::new(name).parent();
        Self {
            options,
            sources,
            base: base.unwrap_or_else(|| Path::new("")).to_owned(),
            notes: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub(crate) fn add_note(&mut self, path: impl Into<String>, text: impl Into<String>) {
        let note = Note::new(path.into(), text.into());
        if self.notes.len() > MAX_MESSAGES || self.notes.contains(&note) {
            return;
        }
        if self.notes.len() == MAX_MESSAGES {
            let text = "more of the same kind; the rest is not listed";
            self.notes.push(Note::new(String::new(), text.to_owned()));
            return;
        }
        self.notes.push(note);
    }

    pub(crate) fn add_problem(&mut self, problem: Problem) {
        if self.problems.len() < MAX_MESSAGES && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// A file that the configuration names; a problem if it cannot be read.
    pub(crate) fn read_file(&mut self, path: &str, file: &str) -> Option<FileText> {
        let read = self.sources.read_file(&self.base.join(file));
        self.text_or_problem(path, file, read)
    }

    /// Does the same as [`read_file`](Self::read_file) with a file of at most `limit` bytes.
    pub(crate) fn read_long_file(
        &mut self,
        path: &str,
        file: &str,
        limit: u64,
    ) -> Option<FileText> {
        let read = self.sources.read_file_up_to(&self.base.join(file), limit);
        self.text_or_problem(path, file, read)
    }

    fn text_or_problem(
        &mut self,
        path: &str,
        file: &str,
        read: std::io::Result<FileText>,
    ) -> Option<FileText> {
        match read {
            Ok(text) => Some(text),
            Err(why) => {
                self.add_problem(Problem::without_place(
                    format!("`{path}`: cannot read `{file}`: {why}"),
                    "relative paths begin at the folder of the configuration",
                ));
                None
            }
        }
    }
}

impl AllowedPlugins {
    /// No plugin.
    #[must_use]
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// These, by the name or path that the document writes.
    #[must_use]
    pub const fn only(names: Vec<String>) -> Self {
        Self(names)
    }

    /// True if this plugin may be started.
    #[must_use]
    pub fn allows(&self, name: &str) -> bool {
        self.0.iter().any(|allowed| allowed == name)
    }
}

impl Format {
    /// The name for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Libev => "shadowsocks-libev",
            Self::Rust => "shadowsocks-rust",
            Self::Go => "shadowsocks-go",
            Self::Sip008 => "SIP008",
            Self::Outline => "Outline",
            Self::Ssr => "ShadowsocksR",
            Self::Links => "links",
            Self::Clash => "Clash",
            Self::SingBox => "sing-box",
            Self::Xray => "Xray",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
