//! SPDX expressions of licences: `MIT OR Apache-2.0`, `(A OR B) AND C`, `A WITH X`.

use std::collections::BTreeSet;

/// A parsed expression.
///
/// `AND` binds tighter than `OR`; an old `/` means `OR`; `X WITH Y` is one licence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LicenseExpression {
    License(String),
    AnyOf(Vec<Self>),
    AllOf(Vec<Self>),
}

impl LicenseExpression {
    /// Returns `None` for a malformed expression.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let spaced = text
            .replace('(', " ( ")
            .replace(')', " ) ")
            .replace('/', " OR ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        let mut parser = Parser { words: &words };
        let expression = parser.parse_any()?;
        parser.words.is_empty().then_some(expression)
    }

    /// Returns true if allowed licences alone satisfy the expression. `X WITH Y` is allowed as a
    /// whole or by `X`.
    pub(crate) fn is_satisfied_by(&self, allowed: &BTreeSet<String>) -> bool {
        match self {
            Self::License(name) => {
                let base = name.split(' ').next().unwrap_or_default();
                allowed.contains(name) || allowed.contains(base)
            }
            Self::AnyOf(terms) => terms.iter().any(|term| term.is_satisfied_by(allowed)),
            Self::AllOf(terms) => terms.iter().all(|term| term.is_satisfied_by(allowed)),
        }
    }

    /// Returns licences that satisfy the expression together. Of alternatives it takes the one
    /// whose worst licence has the lowest `rank`, or the first of several.
    pub(crate) fn choose(&self, rank: &impl Fn(&str) -> usize) -> BTreeSet<&str> {
        let worst = |chosen: &BTreeSet<&str>| chosen.iter().map(|name| rank(name)).max();
        match self {
            Self::License(name) => BTreeSet::from([name.as_str()]),
            Self::AnyOf(terms) => {
                let choices = terms.iter().map(|term| term.choose(rank));
                choices.min_by_key(worst).unwrap_or_default()
            }
            Self::AllOf(terms) => terms.iter().flat_map(|term| term.choose(rank)).collect(),
        }
    }
}

/// The words that are not parsed yet.
struct Parser<'a> {
    words: &'a [&'a str],
}

impl Parser<'_> {
    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn accept(&mut self, word: &str) -> bool {
        let hit = self.words.first() == Some(&word);
        if hit {
            self.next();
        }
        hit
    }

    fn parse_any(&mut self) -> Option<LicenseExpression> {
        let mut terms = vec![self.parse_all()?];
        while self.accept("OR") {
            terms.push(self.parse_all()?);
        }
        Some(match terms.len() {
            1 => terms.remove(0),
            _ => LicenseExpression::AnyOf(terms),
        })
    }

    fn parse_all(&mut self) -> Option<LicenseExpression> {
        let mut terms = vec![self.parse_term()?];
        while self.accept("AND") {
            terms.push(self.parse_term()?);
        }
        Some(match terms.len() {
            1 => terms.remove(0),
            _ => LicenseExpression::AllOf(terms),
        })
    }

    fn parse_term(&mut self) -> Option<LicenseExpression> {
        if self.accept("(") {
            let inner = self.parse_any()?;
            return self.accept(")").then_some(inner);
        }
        let mut name = self.parse_name()?;
        if self.accept("WITH") {
            name = format!("{name} WITH {}", self.parse_name()?);
        }
        Some(LicenseExpression::License(name))
    }

    fn parse_name(&mut self) -> Option<String> {
        let word = self.next()?;
        let is_name = !matches!(word, "AND" | "OR" | "WITH" | "(" | ")");
        is_name.then(|| word.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(text: &str, order: &[&str]) -> Vec<String> {
        let rank = |name: &str| {
            let place = order.iter().position(|known| *known == name);
            place.unwrap_or(order.len())
        };
        let expression = LicenseExpression::parse(text).unwrap();
        let chosen = expression.choose(&rank);
        chosen.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn licences_are_judged_as_expressions() {
        let allowed = ["MIT", "ISC", "Zlib"].map(str::to_owned).into();
        let accepts = |text| {
            let expression = LicenseExpression::parse(text);
            expression.is_some_and(|expression| expression.is_satisfied_by(&allowed))
        };
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "MIT AND (GPL-3.0 OR ISC)",
            "ISC WITH X",
        ] {
            assert!(accepts(good), "{good}");
        }
        for bad in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "MIT OR",
            "(MIT",
            "MIT ISC",
            "AND",
            "MIT WITH",
        ] {
            assert!(!accepts(bad), "{bad}");
        }
    }

    #[test]
    fn the_best_alternative_is_chosen() {
        let order = ["Apache-2.0", "MIT"];
        assert_eq!(choose("MIT OR Apache-2.0", &order), ["Apache-2.0"]);
        assert_eq!(choose("Zlib OR ISC", &order), ["Zlib"]);
        assert_eq!(
            choose("(MIT OR Apache-2.0) AND Unicode-3.0", &order),
            ["Apache-2.0", "Unicode-3.0"]
        );
        assert_eq!(choose("(Apache-2.0 AND X) OR MIT", &order), ["MIT"]);
        assert_eq!(choose("A WITH B OR MIT", &["A WITH B"]), ["A WITH B"]);
    }
}
