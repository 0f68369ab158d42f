//! Windows of terminals as SVG, in light and dark.

use std::fmt::Write;

use crate::report::escaped;

/// A terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) title: String,
    pub(super) lines: Vec<Line>,
}

/// What was typed at a prompt, or printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) is_typed: bool,
    pub(super) text: String,
}

impl Line {
    pub(super) const fn typed(text: String) -> Self {
        Self {
            is_typed: true,
            text,
        }
    }

    pub(super) const fn printed(text: String) -> Self {
        Self {
            is_typed: false,
            text,
        }
    }
}

const WIDTH: f64 = 820.0;
const MARGIN: f64 = 16.0;
/// Letters of a line. A letter is 7.8 wide.
const COLUMNS: usize = 99;
const STEP: f64 = 19.0;
const BAR: f64 = 28.0;
const PROMPT: &str = "$ ";

const STYLE: &str = "<style>\
.window{fill:#ffffff;stroke:#c4ccd4}.bar{fill:#eef1f4}.title{fill:#52606d}\
.typed{fill:#0b69a3;font-weight:600}.printed,.rest{fill:#1f2933}.place{fill:#b44d12}\
@media (prefers-color-scheme:dark){\
.window{fill:#0d1117;stroke:#3d444d}.bar{fill:#21262d}.title{fill:#a3aeb9}\
.typed{fill:#79b8ff}.printed,.rest{fill:#e6edf3}.place{fill:#f0883e}}</style>\n";

/// Returns the picture, with the windows below each other.
pub(super) fn draw(windows: &[Window]) -> String {
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

/// Draws a window and returns where it ends.
fn draw_window(out: &mut String, window: &Window, top: f64) -> f64 {
    let rows: usize = window.lines.iter().map(|line| wrapped(line).len()).sum();
    let height = BAR + STEP * rows as f64 + 18.0;
    let _ = writeln!(
        out,
        "<rect class=\"window\" x=\"1\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" \
         rx=\"8\"/>\n<path class=\"bar\" d=\"M1.5 {:.1}v-{:.1}q0-7 7-7h{:.1}q7 0 7 7v{:.1}z\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"{:.1}\">{}</text>",
        WIDTH - 2.0,
        top + BAR,
        BAR - 7.5,
        WIDTH - 17.0,
        BAR - 7.5,
        top + 19.0,
        escaped(&window.title)
    );
    let mut y = top + BAR + 20.0;
    for line in &window.lines {
        let class = if line.is_typed { "typed" } else { "printed" };
        for (at, row) in wrapped(line).iter().enumerate() {
            let class = if at == 0 { class } else { "rest" };
            let _ = writeln!(
                out,
                "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y:.1}\" xml:space=\"preserve\">{}</text>",
                marked(row)
            );
            y += STEP;
        }
    }
    top + height
}

/// The rows of a line, broken where a terminal breaks it.
fn wrapped(line: &Line) -> Vec<String> {
    let prompt = if line.is_typed { PROMPT } else { "" };
    let letters: Vec<char> = prompt.chars().chain(line.text.chars()).collect();
    if letters.is_empty() {
        return vec![String::new()];
    }
    let rows = letters.chunks(COLUMNS);
    rows.map(|row| row.iter().collect()).collect()
}

/// Text in which placeholders have a colour of their own.
fn marked(row: &str) -> String {
    let mut out = escaped(row);
    for place in [super::KEY, super::KEY_ID] {
        let colored = format!("<tspan class=\"place\">{place}</tspan>");
        out = out.replace(place, &colored);
    }
    out
}

/// Returns the windows that a picture shows; those of `draw` come back unchanged.
#[cfg(test)]
pub(super) fn read(svg: &str) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
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
            windows.push(Window {
                title: text,
                lines: Vec::new(),
            });
            continue;
        }
        let lines = &mut windows.last_mut().unwrap().lines;
        match class {
            "typed" => lines.push(Line::typed(text.strip_prefix(PROMPT).unwrap().to_owned())),
            "printed" => lines.push(Line::printed(text)),
            _ => lines.last_mut().unwrap().text.push_str(&text),
        }
    }
    windows
}
