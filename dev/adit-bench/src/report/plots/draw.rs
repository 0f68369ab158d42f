//! A bar chart as SVG: a title that is its message, groups of bars, an axis with its unit.

use std::fmt::Write;

use super::axis::Axis;
use super::read::Span;
use super::style::{PATTERNS, STYLE};
use super::words::Whose;
use crate::figure::short;

pub(super) const WIDTH: f64 = 760.0;
/// No chart is taller than three quarters of its width.
pub(super) const TALLEST: f64 = WIDTH * 0.75;
const MARGIN: f64 = 14.0;
/// A letter of a name.
const LETTER: f64 = 6.9;
/// Names take this much at least and at most.
const NAMES: (f64, f64) = (90.0, 330.0);
/// Right of the axis, for the figure of the longest bar.
const FIGURES: f64 = 64.0;
const HEADING: f64 = 24.0;
/// From one bar to the next, where there is enough room, and how much of that is the bar.
const STEP: f64 = 22.0;
const BAR: f64 = 0.72;
/// Title and subtitle.
const HEAD: f64 = 62.0;
const LEGEND: f64 = 24.0;
/// Numbers and unit of the axis.
const FOOT: f64 = 46.0;

/// A chart with its figures.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: &'static str,
    /// What is compared, and which end is better.
    pub(super) subtitle: String,
    pub(super) unit: &'static str,
    pub(super) groups: Vec<Group>,
}

/// Bars that are compared with each other first.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) title: &'static str,
    pub(super) bars: Vec<Bar>,
}

/// A figure with its name.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) whose: Whose,
    pub(super) span: Span,
}

impl Chart {
    fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    /// Returns the title and the figures of the first group, for readers who do not see the chart.
    pub(super) fn in_words(&self) -> String {
        let mut out = self.title.to_owned();
        if let Some(group) = self.groups.first() {
            let figures = group
                .bars
                .iter()
                .map(|bar| format!("{} {}", bar.name, short(bar.span.median)));
            let figures = figures.collect::<Vec<_>>().join(", ");
            let _ = write!(out, ", {}: {figures}", group.title);
        }
        out.replace(['[', ']'], "")
    }

    /// Returns the SVG.
    pub(super) fn draw(&self) -> String {
        let kinds = Whose::ALL.into_iter();
        let kinds: Vec<Whose> = kinds
            .filter(|kind| self.bars().any(|bar| bar.whose == *kind))
            .collect();
        let legend = if kinds.len() > 1 { LEGEND } else { 0.0 };
        let top = HEAD + legend;
        let headings = HEADING * self.groups.len() as f64;
        let count = self.bars().count().max(1) as f64;
        let step = ((TALLEST - top - FOOT - headings) / count).min(STEP);
        let bottom = top + headings + step * count;
        let longest = self.bars().map(|bar| bar.name.chars().count()).max();
        let names = (longest.unwrap_or(0) as f64 * LETTER + MARGIN + 10.0).clamp(NAMES.0, NAMES.1);
        let most = self.bars().map(|bar| bar.span.max).fold(0.0, f64::max);
        let axis = Axis::reaching(most);
        let frame = Frame {
            left: names,
            scale: (WIDTH - names - FIGURES) / axis.end(),
            step,
        };
        let mut out = self.head(bottom + FOOT);
        if legend > 0.0 {
            draw_legend(&mut out, &kinds);
        }
        self.draw_axis(&mut out, frame, axis, (top, bottom));
        let mut y = top;
        for group in &self.groups {
            let _ = writeln!(
                out,
                "<text class=\"ink\" x=\"{MARGIN}\" y=\"{:.1}\" font-weight=\"600\">{}</text>",
                y + 16.0,
                escaped(group.title)
            );
            y += HEADING;
            for bar in &group.bars {
                frame.draw(&mut out, y, bar);
                y += step;
            }
        }
        out.push_str("</svg>\n");
        out
    }

    fn head(&self, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.1}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{words}</desc>\n{STYLE}{PATTERNS}\
             <rect class=\"page\" width=\"{WIDTH}\" height=\"{height:.1}\" rx=\"6\"/>\n\
             <text class=\"ink\" x=\"{MARGIN}\" y=\"28\" font-size=\"17\" \
             font-weight=\"600\">{title}</text>\n\
             <text class=\"dim\" x=\"{MARGIN}\" y=\"49\">{subtitle}</text>\n",
            title = escaped(self.title),
            words = escaped(&self.in_words()),
            subtitle = escaped(&self.subtitle),
        )
    }

    fn draw_axis(&self, out: &mut String, frame: Frame, axis: Axis, (top, bottom): (f64, f64)) {
        for (value, label) in axis.marks() {
            let (x, class) = (frame.x(value), if value == 0.0 { "axis" } else { "grid" });
            let _ = writeln!(
                out,
                "<path class=\"{class}\" d=\"M{x:.1} {top:.1}V{bottom:.1}\"/>\
                 <text class=\"dim mark\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
                 font-size=\"12\">{label}</text>",
                bottom + 16.0
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"dim unit\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" \
             font-size=\"12\">{}</text>",
            frame.x(axis.end()),
            bottom + 36.0,
            escaped(self.unit)
        );
    }
}

fn draw_legend(out: &mut String, kinds: &[Whose]) {
    let mut x = MARGIN;
    let y = HEAD;
    for kind in kinds {
        let _ = writeln!(
            out,
            "<rect{} x=\"{x:.1}\" y=\"{y:.1}\" width=\"22\" height=\"12\"/>\
             <text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\">{}</text>",
            paint(*kind),
            x + 28.0,
            y + 10.5,
            kind.legend()
        );
        x += 28.0 + kind.legend().chars().count() as f64 * 6.4 + 20.0;
    }
}

/// The class, and the pattern that it cannot name for every viewer.
fn paint(whose: Whose) -> String {
    let class = whose.class();
    match whose {
        Whose::Adit => format!(" class=\"{class}\""),
        Whose::Rival | Whose::Floor => format!(" class=\"{class}\" fill=\"url(#{class})\""),
    }
}

/// Where bars begin, and how long they are.
#[derive(Debug, Clone, Copy)]
struct Frame {
    left: f64,
    /// Units of the drawing for one of the quantity.
    scale: f64,
    step: f64,
}

impl Frame {
    fn x(self, value: f64) -> f64 {
        self.left + value.max(0.0) * self.scale
    }

    fn draw(self, out: &mut String, y: f64, bar: &Bar) {
        let Span { median, min, max } = bar.span;
        let height = self.step * BAR;
        let middle = y + height / 2.0;
        let baseline = middle + 4.5;
        let _ = writeln!(
            out,
            "<text class=\"ink\" x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>\
             <rect{} x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
            self.left - 8.0,
            escaped(&bar.name),
            paint(bar.whose),
            self.left,
            self.x(median) - self.left,
        );
        if max > min {
            let (from, to) = (self.x(min), self.x(max));
            let (above, below) = (middle - 3.5, middle + 3.5);
            let _ = writeln!(
                out,
                "<path class=\"whisker\" d=\"M{from:.1} {middle:.1}H{to:.1}\
                 M{from:.1} {above:.1}V{below:.1}M{to:.1} {above:.1}V{below:.1}\"/>",
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"ink figure\" x=\"{:.1}\" y=\"{baseline:.1}\">{}</text>",
            self.x(max) + 7.0,
            short(median)
        );
    }
}

/// Text in XML.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
