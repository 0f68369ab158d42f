//! Paths such as `a::b::c` in code, with the braces of a `use` expanded.

/// A path, with the line in which it begins, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CodePath<'a> {
    pub(super) line: usize,
    pub(super) parts: Vec<&'a str>,
    /// The name that a `use` introduces; `None` for a path in other code, `*` for all names in it.
    pub(super) import: Option<&'a str>,
    /// True for a `pub use`.
    pub(super) is_reexport: bool,
}

/// A word or a punctuation mark of code, with its line.
pub(super) type Token<'a> = (usize, &'a str);

/// Splits code without comments and literals into words, `::` and single characters.
pub(super) fn tokenize(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
            let len = if part_of_word(first) {
                rest.find(|c| !part_of_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            let (token, left) = rest.split_at(len);
            tokens.push((number + 1, token));
            rest = left.trim_start();
        }
    }
    tokens
}

/// Returns every path, including those of one part, and every import.
pub(super) fn collect_paths<'a>(tokens: &[Token<'a>]) -> Vec<CodePath<'a>> {
    let mut paths = Vec::new();
    let mut at = 0;
    while let Some(&(line, token)) = tokens.get(at) {
        if token == "use" {
            let before = at.checked_sub(1).and_then(|before| tokens.get(before));
            let passed_on = matches!(before, Some((_, "pub" | ")")));
            at = parse_import(tokens, at + 1, &[], passed_on, &mut paths);
        } else if is_name(token) {
            let mut parts = vec![token];
            at += 1;
            while let [(_, "::"), (_, name), ..] = tokens.get(at..).unwrap_or_default()
                && is_name(name)
            {
                parts.push(name);
                at += 2;
            }
            paths.push(CodePath {
                line,
                parts,
                import: None,
                is_reexport: false,
            });
        } else {
            at += 1;
        }
    }
    paths
}

/// Reads one branch of a `use` after `before`. Returns the position of the next token.
fn parse_import<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    before: &[&'a str],
    passed_on: bool,
    paths: &mut Vec<CodePath<'a>>,
) -> usize {
    let mut parts = before.to_vec();
    while let Some(&(line, token)) = tokens.get(at) {
        at += 1;
        match token {
            "::" => continue,
            "{" => {
                while let Some((_, token)) = tokens.get(at) {
                    match *token {
                        "}" => return at + 1,
                        "," => at += 1,
                        _ => at = parse_import(tokens, at, &parts, passed_on, paths),
                    }
                }
                return at;
            }
            "self" if !before.is_empty() => {}
            name if name == "*" || is_name(name) => parts.push(name),
            // `use<'a>` of a type is not an import.
            _ => return at,
        }
        if matches!(tokens.get(at), Some((_, "::"))) {
            continue;
        }
        let mut import = parts.last().copied();
        if let [(_, "as"), (_, name), ..] = tokens.get(at..).unwrap_or_default() {
            import = Some(name);
            at += 2;
        }
        paths.push(CodePath {
            line,
            parts,
            import,
            is_reexport: passed_on,
        });
        return at;
    }
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_opened() {
        let code =
            "pub(super) use a::{self, b::{c as d, *}, e};\nf::g::<h::I>(j)\n::<'a> + m::N {}";
        let tokens = tokenize(code);
        let told: Vec<String> = collect_paths(&tokens)
            .iter()
            .map(|path| {
                let import = path.import.unwrap_or("-");
                let passed_on = if path.is_reexport { " pub" } else { "" };
                let name = path.parts.join("::");
                format!("{} {name} {import}{passed_on}", path.line)
            })
            .collect();
        assert_eq!(
            told,
            [
                "1 pub -",
                "1 super -",
                "1 a a pub",
                "1 a::b::c d pub",
                "1 a::b::* * pub",
                "1 a::e e pub",
                "2 f::g -",
                "2 h::I -",
                "2 j -",
                "3 a -",
                "3 m::N -"
            ]
        );
    }
}
