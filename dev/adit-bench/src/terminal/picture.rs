//! Terminal windows as SVG, in light and dark.

use std::fmt::Write;

use crate::report::escape_xml;

/// A terminal window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TerminalWindow {
    pub(super) title: String,
    pub(super) lines: Vec<TerminalLine>,
}

/// A line that was typed at a prompt, or printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TerminalLine {
    pub(super) is_typed: bool,
    pub(super) text: String,
}

impl TerminalLine {
    pub(super) const fn new_typed(text: String) -> Self {
        Self {
            is_typed: true,
            text,
        }
    }

    pub(super) const fn new_printed(text: String) -> Self {
        Self {
            is_typed: false,
            text,
        }
    }
}

const WIDTH: f64 = 820.0;
const MARGIN: f64 = 16.0;
/// Letters per line. A letter is 7.8 wide.
const COLUMNS: usize = 99;
const LINE_HEIGHT: f64 = 19.0;
const BAR_HEIGHT: f64 = 28.0;
const PROMPT: &str = "$ ";

const STYLE: &str = "<style>\
.window{fill:#ffffff;stroke:#c4ccd4}.bar{fill:#eef1f4}.title{fill:#52606d}\
.typed{fill:#0b69a3;font-weight:600}.printed,.rest{fill:#1f2933}.place{fill:#b44d12}\
@media (prefers-color-scheme:dark){\
.window{fill:#0d1117;stroke:#3d444d}.bar{fill:#21262d}.title{fill:#a3aeb9}\
.typed{fill:#79b8ff}.printed,.rest{fill:#e6edf3}.place{fill:#f0883e}}</style>\n";

/// Returns the picture, with one window below the other.
pub(super) fn draw_picture(windows: &[TerminalWindow]) -> String {
    let mut body = String::new();
    let mut y = 1.0;
    for window in windows {
        y = draw_window(&mut body, window, y) + 12.0;
    }
    let words: Vec<&str> = windows.iter().map(|window| &*window.title).collect();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\" font-size=\"13\" \
         role=\"img\">\n<title>Terminals: adit {titles}</title>\n{STYLE}{body}</svg>\n",
        height = y - 11.0,
        titles = words.join(", adit "),
    )
}

/// Draws a window and returns its lower end.
fn draw_window(out: &mut String, window: &TerminalWindow, top: f64) -> f64 {
    let rows: usize = window.lines.iter().map(|line| wrap_line(line).len()).sum();
    let height = BAR_HEIGHT + LINE_HEIGHT * rows as f64 + 18.0;
    let _ = writeln!(
        out,
        "<rect class=\"window\" x=\"1\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
         rx=\"8\"/>\n<path class=\"bar\" d=\"M1.5 {:.1}v-{:.1}q0-7 7-7h{:.1}q7 0 7 7v{:.1}z\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"{:.1}\">{}</text>",
        WIDTH - 2.0,
        top + BAR_HEIGHT,
        BAR_HEIGHT - 7.5,
        WIDTH - 17.0,
        BAR_HEIGHT - 7.5,
        top + 19.0,
        escape_xml(&window.title)
    );
    let mut y = top + BAR_HEIGHT + 20.0;
    for line in &window.lines {
        let class = if line.is_typed { "typed" } else { "printed" };
        for (at, row) in wrap_line(line).iter().enumerate() {
            let class = if at == 0 { class } else { "rest" };
            let _ = writeln!(
                out,
                "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y:.1}\" xml:space=\"preserve\">{}</text>",
                mark_placeholders(row)
            );
            y += LINE_HEIGHT;
        }
    }
    top + height
}

/// Splits a line into the rows of a terminal.
fn wrap_line(line: &TerminalLine) -> Vec<String> {
    let prompt = if line.is_typed { PROMPT } else { "" };
    let letters: Vec<char> = prompt.chars().chain(line.text.chars()).collect();
    if letters.is_empty() {
        return vec![String::new()];
    }
    let rows = letters.chunks(COLUMNS);
    rows.map(|row| row.iter().collect()).collect()
}

/// Escapes a row and colours its placeholders.
fn mark_placeholders(row: &str) -> String {
    let mut out = escape_xml(row);
    for place in [super::KEY_PLACEHOLDER, super::KEY_ID_PLACEHOLDER] {
        let colored = format!("<tspan class=\"place\">{place}</tspan>");
        out = out.replace(place, &colored);
    }
    out
}

/// Returns the windows of a picture: the inverse of `draw_picture`.
#[cfg(test)]
pub(super) fn parse_picture(svg: &str) -> Vec<TerminalWindow> {
    let mut windows: Vec<TerminalWindow> = Vec::new();
    for element in svg.split("<text class=\"").skip(1) {
        let (class, rest) = element.split_once('"').unwrap();
        let text = rest.split_once('>').unwrap().1;
        let text = text.split("</text>").next().unwrap();
        let text = text
            .replace("<tspan class=\"place\">", "")
            .replace("</tspan>", "")
            .replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        if class == "title" {
            windows.push(TerminalWindow {
                title: text,
                lines: Vec::new(),
            });
            continue;
        }
        let lines = &mut windows.last_mut().unwrap().lines;
        match class {
            "typed" => lines.push(TerminalLine::new_typed(
                text.strip_prefix(PROMPT).unwrap().to_owned(),
            )),
            "printed" => lines.push(TerminalLine::new_printed(text)),
            _ => lines.last_mut().unwrap().text.push_str(&text),
        }
    }
    windows
}
