//! From words, from `-L`/`-F` and from files to drafts of routes, and from these to the plan.

use std::path::Path;

use crate::plan::draft::{RouteDraft, StageDraft, hop, is_route_name, listen};
use crate::plan::{Plan, Stage, check, file};
use crate::schema::Role;
use crate::scheme::mask;
use crate::text::{Desk, Lookup, Machine, Origin, Problem, Sources, WarningKind, read_file};

/// An option of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgItem {
    /// `-L URL`: begins a route, or joins the one before if that has no hop yet.
    Listen(String),
    /// `-F URL`: adds a hop to the route.
    Forward(String),
}

impl Plan {
    /// One route: the first word listens, the others are the chain, left to right.
    ///
    /// Files and the environment are read for `@file` and `$NAME`. All problems that can be told
    /// apart are reported.
    pub fn from_words(words: &[String]) -> Result<Self, Vec<Problem>> {
        Self::from_words_with(words, &Machine)
    }

    /// As [`Plan::from_words`], with files and variables from elsewhere.
    pub fn from_words_with(words: &[String], sources: &dyn Sources) -> Result<Self, Vec<Problem>> {
        let items = words.iter().enumerate().map(|(i, word)| {
            let role = if i == 0 { Role::Listener } else { Role::Hop };
            (role, word.as_str())
        });
        from_items(items, sources)
    }

    /// Routes from `-L` and `-F` options, in their order.
    pub fn from_args(items: &[ArgItem]) -> Result<Self, Vec<Problem>> {
        Self::from_args_with(items, &Machine)
    }

    /// As [`Plan::from_args`], with files and variables from elsewhere.
    pub fn from_args_with(items: &[ArgItem], sources: &dyn Sources) -> Result<Self, Vec<Problem>> {
        let items = items.iter().map(|item| match item {
            ArgItem::Listen(text) => (Role::Listener, text.as_str()),
            ArgItem::Forward(text) => (Role::Hop, text.as_str()),
        });
        from_items(items, sources)
    }

    /// Routes from the text of a configuration file. `file_name` is shown in messages, and
    /// relative paths in the text begin at its folder.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, Vec<Problem>> {
        Self::from_toml_with(text, file_name, &Machine)
    }

    /// As [`Plan::from_toml`], with files and variables from elsewhere.
    pub fn from_toml_with(
        text: &str,
        file_name: &str,
        sources: &dyn Sources,
    ) -> Result<Self, Vec<Problem>> {
        let mut desk = Desk::default();
        let routes = toml_routes(&mut desk, text, file_name, sources);
        check::finish(desk, routes)
    }

    /// Routes from a configuration file; warns if others can read the secrets in it.
    pub fn from_file(path: &Path) -> Result<Self, Vec<Problem>> {
        let name = path.display().to_string();
        let file = match read_file(path, file::MAX_FILE_LEN) {
            Ok(file) => file,
            Err(why) => {
                let title = format!("cannot read `{name}`: {why}");
                let help = "`-c FILE` names the configuration file";
                return Err(vec![Problem::without_place(title, help)]);
            }
        };
        let mut desk = Desk::default();
        let routes = toml_routes(&mut desk, &file.text, &name, &Machine);
        if file.readable_by_others && desk.literal_secret {
            let title = format!("every user of this machine can read the secrets in `{name}`");
            let about = Problem::without_place(title, format!("chmod 600 {name}"));
            desk.warning(WarningKind::ReadableSecret, about);
        }
        check::finish(desk, routes)
    }
}

fn toml_routes(
    desk: &mut Desk,
    text: &str,
    file_name: &str,
    sources: &dyn Sources,
) -> Vec<RouteDraft> {
    let base = Path::new(file_name)
        .parent()
        .unwrap_or_else(|| Path::new(""));
    file::routes(desk, Lookup { sources, base }, text, file_name)
}

fn from_items<'a>(
    items: impl Iterator<Item = (Role, &'a str)>,
    sources: &dyn Sources,
) -> Result<Plan, Vec<Problem>> {
    let mut desk = Desk::default();
    let base = Path::new("");
    let lookup = Lookup { sources, base };
    let mut routes: Vec<RouteDraft> = Vec::new();
    let mut begun = false;
    let mut chained = true;
    for (i, (role, text)) in items.enumerate() {
        let origin = Origin::Argument(i + 1);
        let quote = mask::document(&origin, text).whole();
        match role {
            Role::Listener => {
                if chained {
                    routes.push(RouteDraft::new(format!("route{}", routes.len() + 1)));
                    chained = false;
                }
                begun = true;
                let found = listen(&mut desk, lookup, quote, text, None);
                if let (Some(route), Some((draft, name))) = (routes.last_mut(), found) {
                    if route.listen.is_empty()
                        && let Some(name) = name.filter(|name| is_route_name(name))
                    {
                        route.name = name;
                    }
                    route.listen.push(draft);
                }
            }
            Role::Hop => {
                chained = true;
                let found = hop(&mut desk, lookup, quote, text);
                match (routes.last_mut(), found) {
                    (Some(route), Some((hop, place))) => route.via.push(StageDraft {
                        stage: Stage::One(hop),
                        place,
                    }),
                    (None, Some((_, place))) => desk.problem(Problem {
                        title: "a hop before any listener".to_owned(),
                        place: Some(place),
                        label: String::new(),
                        help: vec!["`-L URL` begins a route, `-F URL` adds a hop to it".to_owned()],
                    }),
                    (_, None) => {}
                }
            }
        }
    }
    if !begun && desk.problems.is_empty() {
        let help = "begin with `mixed://127.0.0.1:1080`";
        desk.problem(Problem::without_place("no endpoint to listen on", help));
    }
    unique_names(&mut routes);
    check::finish(desk, routes)
}

/// Names from `#name` can repeat; the later ones get their number.
fn unique_names(routes: &mut [RouteDraft]) {
    for i in 1..routes.len() {
        let (before, rest) = routes.split_at_mut(i);
        if let Some(route) = rest.first_mut()
            && before.iter().any(|other| other.name == route.name)
        {
            route.name = format!("route{}", i + 1);
        }
    }
}
