//! The links of a document, and its anchors.

use std::collections::{BTreeSet, HashMap};

/// A document.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) links: Vec<Link>,
    pub(super) anchors: BTreeSet<String>,
}

/// A link as it is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

impl Document {
    /// Parses Markdown. Text in code is neither a link nor a heading.
    pub(super) fn parse(text: &str) -> Self {
        let mut page = Self::default();
        let mut slugs: HashMap<String, usize> = HashMap::new();
        for (number, line) in prose_lines(text) {
            if let Some(heading) = heading_text(line) {
                let slug = anchor_of(heading);
                let seen = slugs.entry(slug.clone()).or_default();
                page.anchors.insert(match *seen {
                    0 => slug,
                    again => format!("{slug}-{again}"),
                });
                *seen += 1;
            }
            let line = strip_code_spans(line);
            page.anchors.extend(html_anchors(&line));
            for to in link_targets(&line) {
                page.links.push(Link {
                    line: number,
                    target: to,
                });
            }
        }
        page
    }
}

/// Returns the lines outside of code blocks, with their numbers.
pub(crate) fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let line = line.trim_start();
        match fence {
            None => {
                fence = ["```", "~~~"]
                    .into_iter()
                    .find(|mark| line.starts_with(mark));
                fence.is_none()
            }
            Some(mark) => {
                if line.starts_with(mark) {
                    fence = None;
                }
                false
            }
        }
    })
}

/// Returns the text of a heading.
fn heading_text(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then_some(())?;
    text.strip_prefix(' ').map(str::trim)
}

/// Returns the anchor of a heading, as code hosts and mdBook form it.
fn anchor_of(heading: &str) -> String {
    let mut slug = String::new();
    for c in strip_link_targets(heading).trim().chars() {
        match c {
            ' ' => slug.push('-'),
            '-' | '_' => slug.push(c),
            c if c.is_alphanumeric() => slug.extend(c.to_lowercase()),
            _ => {}
        }
    }
    slug
}

/// Returns a heading with the texts of its links, without their targets.
fn strip_link_targets(heading: &str) -> String {
    let mut out = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        out.push_str(before);
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    out + rest
}

/// Returns a line without its code spans.
pub(crate) fn strip_code_spans(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let (before, code) = rest.split_at(start);
        out.push_str(before);
        let ticks = code.len() - code.trim_start_matches('`').len();
        let (mark, inside) = code.split_at(ticks);
        rest = inside
            .split_once(mark)
            .map_or("", |(_, behind)| behind.trim_start_matches('`'));
    }
    out + rest
}

/// Returns the targets of a line's links and images.
fn link_targets(line: &str) -> Vec<String> {
    let inline = line.match_indices("](").filter_map(|(at, mark)| {
        let rest = line.get(at + mark.len()..)?;
        let to = rest.split([')', ' ']).next()?;
        Some(to.trim_matches(['<', '>']).to_owned())
    });
    let definition = line.strip_prefix('[').and_then(|rest| {
        let (_, to) = rest.split_once("]: ")?;
        let to = to.split_whitespace().next()?;
        to.contains(['/', '.', '#', ':']).then(|| to.to_owned())
    });
    inline.chain(definition).collect()
}

/// Returns the anchors that are written in HTML.
fn html_anchors(line: &str) -> impl Iterator<Item = String> {
    let parts = line.split("id=\"").skip(1);
    parts.filter_map(|part| part.split('"').next().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(text: &str) -> Vec<String> {
        let page = Document::parse(text);
        page.links.into_iter().map(|link| link.target).collect()
    }

    #[test]
    fn links_are_found_outside_code() {
        assert_eq!(
            links("[a](b.md) and ![c](d.svg \"e\"), `[f](g.md)`\n"),
            ["b.md", "d.svg"]
        );
        assert_eq!(links("```\n[a](b.md)\n```\n[c](<d.md>)\n"), ["d.md"]);
        assert_eq!(links("[`a`](b.md#c)\n[d]: e.md\n"), ["b.md#c", "e.md"]);
        assert_eq!(links("``a ` [b](c.md)`` [d](e.md)"), ["e.md"]);
        let page = Document::parse("one\n\n[a](b.md)\n");
        assert_eq!(page.links.first().unwrap().line, 3);
    }

    #[test]
    fn anchors_are_those_of_code_hosts() {
        for (heading, anchor) in [
            ("Two words", "two-words"),
            ("`+kcp`", "kcp"),
            ("`tcp+udp`", "tcpudp"),
            ("5. Keep it running", "5-keep-it-running"),
            ("First: TCP with BBR", "first-tcp-with-bbr"),
            ("A [link](to.md) here", "a-link-here"),
            ("What it is, and *why*", "what-it-is-and-why"),
        ] {
            let page = Document::parse(&format!("## {heading}\n"));
            assert!(page.anchors.contains(anchor), "{:?}", page.anchors);
        }
        let twice = Document::parse("# A\n## Try it\n## Try it\n<a id=\"b\"></a>\n#no\n");
        assert_eq!(
            twice.anchors.into_iter().collect::<Vec<_>>(),
            ["a", "b", "try-it", "try-it-1"]
        );
    }
}
