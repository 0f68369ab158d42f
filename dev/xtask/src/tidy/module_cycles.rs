//! Cycles of modules: files of one crate each of which leads to every other.
//!
//! A file leads to another if one of its paths names something that the other file defines,
//! whatever re-exports lie between. `mod x;` and `pub use` by themselves lead nowhere, and tests
//! are skipped.

use std::collections::{BTreeMap, BTreeSet};

use super::code_paths::{Token, collect_paths, tokenize};
use super::code_text::blank_literals;
use crate::source_files::SourceFile;

/// Maximum number of files in a cycle.
const MAX_CYCLE_LEN: usize = 5;

/// Returns cycles that are too large.
pub(super) fn find_faults(sources: &[SourceFile]) -> Vec<String> {
    describe_oversized(&find_cycles(sources))
}

fn describe_oversized(circles: &[Vec<String>]) -> Vec<String> {
    let large = circles.iter().filter(|circle| circle.len() > MAX_CYCLE_LEN);
    large
        .map(|circle| {
            let (size, files) = (circle.len(), circle.join(", "));
            format!("a cycle of {size} modules, more than {MAX_CYCLE_LEN}: {files}")
        })
        .collect()
}

/// A file as a module of its crate.
#[derive(Debug)]
struct ModuleNode<'a> {
    file: &'a str,
    parent: usize,
    children: BTreeMap<&'a str, usize>,
    /// The meaning of the names of each `use`.
    imports: BTreeMap<&'a str, Vec<&'a str>>,
    /// Every path, except for those that are only re-exported.
    used: BTreeSet<Vec<&'a str>>,
}

/// Returns the cycles of two files and more, each in order.
fn find_cycles(sources: &[SourceFile]) -> Vec<Vec<String>> {
    let codes: BTreeMap<&str, String> = sources
        .iter()
        .filter(|source| source.path.ends_with(".rs"))
        .map(|source| (source.path.as_str(), blank_literals(&source.text)))
        .collect();
    let mut found = Vec::new();
    for root in codes.keys() {
        if root.ends_with("/src/lib.rs") || root.ends_with("/src/main.rs") {
            let mut modules = Vec::new();
            load_module(&codes, root, 0, &mut modules);
            found.extend(strongly_connected(&modules));
        }
    }
    found
}

/// Adds the module of a file and the modules below it.
fn load_module<'a>(
    codes: &'a BTreeMap<&str, String>,
    file: &'a str,
    parent: usize,
    modules: &mut Vec<ModuleNode<'a>>,
) {
    let own = modules.len();
    let code = codes.get(file).map_or("", String::as_str);
    let tokens = strip_test_items(&tokenize(code));
    let mut module = ModuleNode {
        file,
        parent,
        children: BTreeMap::new(),
        imports: BTreeMap::new(),
        used: BTreeSet::new(),
    };
    for path in collect_paths(&tokens) {
        if let Some(name) = path.import {
            module.imports.insert(name, path.parts.clone());
        }
        if !path.is_reexport {
            module.used.insert(path.parts);
        }
    }
    modules.push(module);
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let folder = match name.trim_end_matches(".rs") {
        "lib" | "main" | "mod" => folder.to_owned(),
        stem => format!("{folder}/{stem}"),
    };
    for three in tokens.windows(3) {
        let [(_, "mod"), (_, name), (_, ";")] = three else {
            continue;
        };
        let places = [
            format!("{folder}/{name}.rs"),
            format!("{folder}/{name}/mod.rs"),
        ];
        let mut found = places
            .iter()
            .map(|place| codes.get_key_value(place.as_str()));
        if let Some((file, _)) = found.find_map(|found| found) {
            let child = modules.len();
            load_module(codes, file, own, modules);
            if let Some(module) = modules.get_mut(own) {
                module.children.insert(name, child);
            }
        }
    }
}

/// Returns the tokens without items of `#[cfg(test)]` and similar ones.
fn strip_test_items<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut left = Vec::new();
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        if let [(_, "#"), (_, "["), (_, "cfg"), ..] = tokens.get(at..).unwrap_or_default() {
            let end = skip_past(tokens, at + 1, &["]"]);
            let attribute = tokens.get(at..end).unwrap_or_default();
            if attribute.iter().any(|(_, word)| *word == "test") {
                at = skip_past(tokens, end, &[";", "}"]);
                continue;
            }
        }
        left.push(token);
        at += 1;
    }
    left
}

/// Returns the position after the first of `ends` that is outside of brackets.
fn skip_past(tokens: &[Token<'_>], from: usize, ends: &[&str]) -> usize {
    let mut depth = 0usize;
    for (at, (_, token)) in tokens.iter().enumerate().skip(from) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && ends.contains(token) {
            return at + 1;
        }
    }
    tokens.len()
}

/// The meaning of a name in a module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NameTarget {
    Module(usize),
    /// An item that the file of this module defines.
    Item(usize),
}

/// Maximum number of re-exports that are followed.
const MAX_REEXPORTS: usize = 16;

/// Returns the target of a path that begins in module `from`; `None` if it is not a module of the
/// crate.
fn resolve_path(
    modules: &[ModuleNode<'_>],
    from: usize,
    parts: &[&str],
    hops: usize,
) -> Option<NameTarget> {
    let (first, rest) = parts.split_first()?;
    let mut meaning = match *first {
        "crate" => NameTarget::Module(0),
        "self" => NameTarget::Module(from),
        "super" => NameTarget::Module(modules.get(from)?.parent),
        name => resolve_name(modules, from, name, hops)?,
    };
    for name in rest {
        let NameTarget::Module(at) = meaning else {
            break;
        };
        meaning = match *name {
            "super" => NameTarget::Module(modules.get(at)?.parent),
            "*" => NameTarget::Item(at),
            name => resolve_name(modules, at, name, hops)?,
        };
    }
    Some(meaning)
}

/// Returns the meaning of a name inside a module: a module below it, an import, or an item of its
/// own.
fn resolve_name(
    modules: &[ModuleNode<'_>],
    at: usize,
    name: &str,
    hops: usize,
) -> Option<NameTarget> {
    let module = modules.get(at)?;
    if let Some(child) = module.children.get(name) {
        return Some(NameTarget::Module(*child));
    }
    match module.imports.get(name) {
        // An import of the same name from another crate.
        Some(parts) if parts.first() == Some(&name) => None,
        Some(parts) if hops > 0 => resolve_path(modules, at, parts, hops - 1),
        _ => Some(NameTarget::Item(at)),
    }
}

/// Returns the cycles of one crate.
fn strongly_connected(modules: &[ModuleNode<'_>]) -> Vec<Vec<String>> {
    let mut arrows: Vec<BTreeSet<usize>> = Vec::new();
    for (from, module) in modules.iter().enumerate() {
        let to = module.used.iter().filter_map(|path| {
            match resolve_path(modules, from, path, MAX_REEXPORTS)? {
                NameTarget::Item(to) if to != from => Some(to),
                // A module alone contains only the positions of its names.
                _ => None,
            }
        });
        arrows.push(to.collect());
    }
    let reached: Vec<BTreeSet<usize>> = (0..modules.len())
        .map(|from| {
            let mut seen = BTreeSet::new();
            let mut left = vec![from];
            while let Some(at) = left.pop() {
                let next = arrows.get(at).into_iter().flatten();
                left.extend(next.filter(|to| seen.insert(**to)));
            }
            seen
        })
        .collect();
    let leads = |from: usize, to: usize| reached.get(from).is_some_and(|seen| seen.contains(&to));
    let mut found = Vec::new();
    for first in 0..modules.len() {
        let ring: Vec<usize> = (0..modules.len())
            .filter(|to| leads(first, *to) && leads(*to, first))
            .collect();
        if ring.len() > 1 && ring.first() == Some(&first) {
            let files = ring.iter().filter_map(|at| modules.get(*at));
            let mut files: Vec<String> = files.map(|module| module.file.to_owned()).collect();
            files.sort();
            found.push(files);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let source = |(path, text): &(&str, &str)| SourceFile {
            path: format!("app/a/src/{path}"),
            text: (*text).to_owned(),
        };
        let mut rings = find_cycles(&files.iter().map(source).collect::<Vec<_>>());
        for file in rings.iter_mut().flatten() {
            *file = file.replace("app/a/src/", "");
        }
        rings
    }

    #[test]
    fn names_are_followed_to_the_file_that_defines_them() {
        let (low, high) = ("pub struct Low;", "use crate::Low; pub struct High(Low);");
        let root = "mod high; mod low; pub use low::Low; pub use high::High;";
        let files = |low| [("lib.rs", root), ("low.rs", low), ("high.rs", high)];
        assert_eq!(tree(&files(low)), [[""; 0]; 0]);
        for low in [
            "use crate::High; pub struct Low(High);",
            "pub struct Low(super::high::High);",
            "use super::*; use crate::{high as above, x}; pub struct Low; fn f() { above::g() }",
        ] {
            assert_eq!(tree(&files(low)), [["high.rs", "low.rs"]], "{low}");
        }
        for low in [
            "pub struct Low; #[cfg(test)] mod tests { use crate::High; }",
            "pub struct Low; #[cfg(all(test, unix))] use crate::High;",
            "use crate::high; use other::High; pub struct Low(High, other::high::X);",
            "// crate::High\npub struct Low;",
        ] {
            assert_eq!(tree(&files(low)), [[""; 0]; 0], "{low}");
        }
    }

    #[test]
    fn a_parent_and_what_stands_below_it() {
        let files = [
            ("main.rs", "mod a;"),
            ("a/mod.rs", "mod b; pub struct A(b::B);"),
            ("a/b.rs", "mod c; pub struct B;"),
            ("a/b/c.rs", "fn f(a: super::super::A) {}"),
        ];
        assert_eq!(tree(&files), [[""; 0]; 0]);
        let mut files = files;
        files[2].1 = "mod c; pub struct B(super::A);";
        assert_eq!(tree(&files), [["a/b.rs", "a/mod.rs"]]);
    }

    #[test]
    fn large_circles_are_faults() {
        let circle = |size: usize| vec![(0..size).map(|n| format!("{n}.rs")).collect::<Vec<_>>()];
        assert_eq!(describe_oversized(&circle(MAX_CYCLE_LEN)), [""; 0]);
        assert!(describe_oversized(&circle(MAX_CYCLE_LEN + 1))[0].contains("a cycle of 6 modules"));
    }
}
