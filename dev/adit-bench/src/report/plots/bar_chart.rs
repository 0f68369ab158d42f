//! A bar chart as SVG: a title that is its message, groups of bars, an axis with its unit.

use std::fmt::Write;

use super::bar_names::BarOwner;
use super::chart_axis::ChartAxis;
use super::chart_style::{PATTERNS, STYLE};
use super::page_tables::PageFigure;
use crate::figures::format_short;

pub(super) const WIDTH: f64 = 760.0;
/// No chart is taller than three quarters of its width.
pub(super) const MAX_HEIGHT: f64 = WIDTH * 0.75;
const MARGIN: f64 = 14.0;
/// Width of a letter of a name.
const LETTER_WIDTH: f64 = 6.9;
/// Minimum and maximum width of the column of names.
const NAME_WIDTHS: (f64, f64) = (90.0, 330.0);
/// Width of the figure of the longest bar, right of the axis.
const FIGURE_WIDTH: f64 = 64.0;
const HEADING_HEIGHT: f64 = 24.0;
/// Maximum distance from one bar to the next, and the share of it that the bar fills.
const BAR_STEP: f64 = 22.0;
const BAR_SHARE: f64 = 0.72;
/// Height of title and subtitle.
const HEAD_HEIGHT: f64 = 62.0;
const LEGEND_HEIGHT: f64 = 24.0;
/// Height of the numbers and unit of the axis.
const FOOT_HEIGHT: f64 = 46.0;

/// A chart with its figures.
#[derive(Debug)]
pub(super) struct BarChart {
    pub(super) title: &'static str,
    /// The subject of the comparison, and the better direction.
    pub(super) subtitle: String,
    pub(super) unit: &'static str,
    pub(super) groups: Vec<BarGroup>,
}

/// Bars that are primarily compared with each other.
#[derive(Debug)]
pub(super) struct BarGroup {
    pub(super) title: &'static str,
    pub(super) bars: Vec<ChartBar>,
}

/// A figure with its name.
#[derive(Debug)]
pub(super) struct ChartBar {
    pub(super) name: String,
    pub(super) owner: BarOwner,
    pub(super) span: PageFigure,
}

impl BarChart {
    fn bars(&self) -> impl Iterator<Item = &ChartBar> {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    /// Returns the title and the figures of the first group, for readers who cannot see the chart.
    pub(super) fn alt_text(&self) -> String {
        let mut out = self.title.to_owned();
        if let Some(group) = self.groups.first() {
            let figures = group
                .bars
                .iter()
                .map(|bar| format!("{} {}", bar.name, format_short(bar.span.median)));
            let figures = figures.collect::<Vec<_>>().join(", ");
            let _ = write!(out, ", {}: {figures}", group.title);
        }
        out.replace(['[', ']'], "")
    }

    /// Returns the SVG.
    pub(super) fn to_svg(&self) -> String {
        let kinds = BarOwner::ALL.into_iter();
        let kinds: Vec<BarOwner> = kinds
            .filter(|kind| self.bars().any(|bar| bar.owner == *kind))
            .collect();
        let legend = if kinds.len() > 1 { LEGEND_HEIGHT } else { 0.0 };
        let top = HEAD_HEIGHT + legend;
        let headings = HEADING_HEIGHT * self.groups.len() as f64;
        let count = self.bars().count().max(1) as f64;
        let step = ((MAX_HEIGHT - top - FOOT_HEIGHT - headings) / count).min(BAR_STEP);
        let bottom = top + headings + step * count;
        let longest = self.bars().map(|bar| bar.name.chars().count()).max();
        let names = (longest.unwrap_or(0) as f64 * LETTER_WIDTH + MARGIN + 10.0)
            .clamp(NAME_WIDTHS.0, NAME_WIDTHS.1);
        let most = self.bars().map(|bar| bar.span.max).fold(0.0, f64::max);
        let axis = ChartAxis::for_maximum(most);
        let frame = PlotFrame {
            left: names,
            scale: (WIDTH - names - FIGURE_WIDTH) / axis.end(),
            step,
        };
        let mut out = self.svg_head(bottom + FOOT_HEIGHT);
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
                escape_xml(group.title)
            );
            y += HEADING_HEIGHT;
            for bar in &group.bars {
                frame.draw_bar(&mut out, y, bar);
                y += step;
            }
        }
        out.push_str("</svg>\n");
        out
    }

    fn svg_head(&self, height: f64) -> String {
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.1}\" \
             font-family=\"system-ui, sans-serif\" font-size=\"13\" role=\"img\">\n\
             <title>{title}</title>\n<desc>{words}</desc>\n{STYLE}{PATTERNS}\
             <rect class=\"page\" width=\"{WIDTH}\" height=\"{height:.1}\" rx=\"6\"/>\n\
             <text class=\"ink\" x=\"{MARGIN}\" y=\"28\" font-size=\"17\" \
             font-weight=\"600\">{title}</text>\n\
             <text class=\"dim\" x=\"{MARGIN}\" y=\"49\">{subtitle}</text>\n",
            title = escape_xml(self.title),
            words = escape_xml(&self.alt_text()),
            subtitle = escape_xml(&self.subtitle),
        )
    }

    fn draw_axis(
        &self,
        out: &mut String,
        frame: PlotFrame,
        axis: ChartAxis,
        (top, bottom): (f64, f64),
    ) {
        for (value, label) in axis.marks() {
            let (x, class) = (
                frame.x_of(value),
                if value == 0.0 { "axis" } else { "grid" },
            );
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
            frame.x_of(axis.end()),
            bottom + 36.0,
            escape_xml(self.unit)
        );
    }
}

fn draw_legend(out: &mut String, kinds: &[BarOwner]) {
    let mut x = MARGIN;
    let y = HEAD_HEIGHT;
    for kind in kinds {
        let _ = writeln!(
            out,
            "<rect{} x=\"{x:.1}\" y=\"{y:.1}\" width=\"22\" height=\"12\"/>\
             <text class=\"dim\" x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\">{}</text>",
            paint_attributes(*kind),
            x + 28.0,
            y + 10.5,
            kind.legend()
        );
        x += 28.0 + kind.legend().chars().count() as f64 * 6.4 + 20.0;
    }
}

/// Returns the class and the pattern as attributes: not every viewer accepts a pattern in CSS.
fn paint_attributes(owner: BarOwner) -> String {
    let class = owner.class();
    match owner {
        BarOwner::Adit => format!(" class=\"{class}\""),
        BarOwner::Rival | BarOwner::Floor => format!(" class=\"{class}\" fill=\"url(#{class})\""),
    }
}

/// The position and scale of bars.
#[derive(Debug, Clone, Copy)]
struct PlotFrame {
    left: f64,
    /// Units of the drawing per unit of the quantity.
    scale: f64,
    step: f64,
}

impl PlotFrame {
    fn x_of(self, value: f64) -> f64 {
        self.left + value.max(0.0) * self.scale
    }

    fn draw_bar(self, out: &mut String, y: f64, bar: &ChartBar) {
        let PageFigure { median, min, max } = bar.span;
        let height = self.step * BAR_SHARE;
        let middle = y + height / 2.0;
        let baseline = middle + 4.5;
        let _ = writeln!(
            out,
            "<text class=\"ink\" x=\"{:.1}\" y=\"{baseline:.1}\" text-anchor=\"end\">{}</text>\
             <rect{} x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
            self.left - 8.0,
            escape_xml(&bar.name),
            paint_attributes(bar.owner),
            self.left,
            self.x_of(median) - self.left,
        );
        if max > min {
            let (from, to) = (self.x_of(min), self.x_of(max));
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
            self.x_of(max) + 7.0,
            format_short(median)
        );
    }
}

/// Escapes text for XML.
pub(crate) fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
