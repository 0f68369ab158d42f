//! From words, from `-L`/`-F` and from files to drafts of routes, and from these to the plan.

use std::path::Path;

use crate::plan::unchecked::{UncheckedRoute, UncheckedStage, hop, is_route_name, listen};
use crate::plan::{Plan, Stage, check, file};
use crate::schema::EndpointRole;
use crate::scheme::secret_mask;
use crate::text::{Diagnostics, Lookup, Machine, Origin, Problem, Sources, WarningKind, read_file};

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
            let role = if i == 0 {
                EndpointRole::Listener
            } else {
                EndpointRole::Hop
            };
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
            ArgItem::Listen(text) => (EndpointRole::Listener, text.as_str()),
            ArgItem::Forward(text) => (EndpointRole::Hop, text.as_str()),
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
        let mut diagnostics = Diagnostics::default();
        let routes = toml_routes(&mut diagnostics, text, file_name, sources);
        check::finish(diagnostics, routes)
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
        let mut diagnostics = Diagnostics::default();
        let routes = toml_routes(&mut diagnostics, &file.text, &name, &Machine);
        if file.readable_by_others && diagnostics.literal_secret {
            let title = format!("every user of this machine can read the secrets in `{name}`");
            let about = Problem::without_place(title, format!("chmod 600 {name}"));
            diagnostics.warning(WarningKind::ReadableSecret, about);
        }
        check::finish(diagnostics, routes)
    }
}

fn toml_routes(
    diagnostics: &mut Diagnostics,
    text: &str,
    file_name: &str,
    sources: &dyn Sources,
) -> Vec<UncheckedRoute> {
    let base = Path::new(file_name)
        .parent()
        .unwrap_or_else(|| Path::new(""));
    file::routes(diagnostics, Lookup { sources, base }, text, file_name)
}

fn from_items<'a>(
    items: impl Iterator<Item = (EndpointRole, &'a str)>,
    sources: &dyn Sources,
) -> Result<Plan, Vec<Problem>> {
    let mut diagnostics = Diagnostics::default();
    let base = Path::new("");
    let lookup = Lookup { sources, base };
    let mut routes: Vec<UncheckedRoute> = Vec::new();
    let mut begun = false;
    let mut chained = true;
    for (i, (role, text)) in items.enumerate() {
        let origin = Origin::Argument(i + 1);
        let excerpt = secret_mask::document(&origin, text).whole();
        match role {
            EndpointRole::Listener => {
                if chained {
                    routes.push(UncheckedRoute::new(format!("route{}", routes.len() + 1)));
                    chained = false;
                }
                begun = true;
                let found = listen(&mut diagnostics, lookup, excerpt, text, None);
                if let (Some(route), Some((draft, name))) = (routes.last_mut(), found) {
                    if route.listen.is_empty()
                        && let Some(name) = name.filter(|name| is_route_name(name))
                    {
                        route.name = name;
                    }
                    route.listen.push(draft);
                }
            }
            EndpointRole::Hop => {
                chained = true;
                let found = hop(&mut diagnostics, lookup, excerpt, text);
                match (routes.last_mut(), found) {
                    (Some(route), Some((hop, place))) => route.via.push(UncheckedStage {
                        stage: Stage::One(hop),
                        place,
                    }),
                    (None, Some((_, place))) => diagnostics.problem(Problem {
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
    if !begun && diagnostics.problems.is_empty() {
        let help = "begin with `mixed://127.0.0.1:1080`";
        diagnostics.problem(Problem::without_place("no endpoint to listen on", help));
    }
    unique_names(&mut routes);
    check::finish(diagnostics, routes)
}

/// Names from `#name` can repeat; the later ones get their number.
fn unique_names(routes: &mut [UncheckedRoute]) {
    for i in 1..routes.len() {
        let (before, rest) = routes.split_at_mut(i);
        if let Some(route) = rest.first_mut()
            && before.iter().any(|other| other.name == route.name)
        {
            route.name = format!("route{}", i + 1);
        }
    }
}
