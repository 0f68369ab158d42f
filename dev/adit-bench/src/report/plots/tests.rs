//! Tests of charts: lengths, bounds, schemes, words.

use std::fs;

use clap::ValueEnum;

use super::bar_chart::{MAX_HEIGHT, WIDTH};
use super::bar_names::BarOwner;
use super::*;
use crate::locations::workspace_root;

fn numbers_of(svg: &str, attribute: &str) -> Vec<f64> {
    let before = format!(" {attribute}=\"");
    let parts = svg.split(&before).skip(1);
    parts
        .filter_map(|part| part.split('"').next()?.parse().ok())
        .collect()
}

/// The texts that a reader sees.
fn texts(svg: &str) -> Vec<&str> {
    let parts = svg.split("<text ").skip(1);
    parts
        .filter_map(|part| part.split_once('>')?.1.split('<').next())
        .collect()
}

/// The lengths of the bars of a kind.
fn bars_of(svg: &str, owner: BarOwner) -> Vec<f64> {
    let class = format!("class=\"{}\"", owner.class());
    let bars = svg.split("<rect").filter(|part| {
        let element = part.split('>').next().unwrap_or_default();
        // Legends are 22 wide and 12 high.
        element.contains(&class) && !element.contains("width=\"22\" height=\"12\"")
    });
    bars.filter_map(|bar| numbers_of(bar, "width").first().copied())
        .collect()
}

fn bar(name: &str, owner: BarOwner, median: f64) -> ChartBar {
    let span = PageFigure {
        median,
        min: median,
        max: median,
    };
    let name = name.to_owned();
    ChartBar { name, owner, span }
}

fn chart_of(groups: Vec<BarGroup>) -> BarChart {
    BarChart {
        title: "CPU per GiB",
        subtitle: "all together; less is better".to_owned(),
        unit: "CPU seconds per GiB",
        groups,
    }
}

fn small() -> BarChart {
    let mut bars = vec![
        bar("adit", BarOwner::Adit, 1.0),
        bar("other", BarOwner::Rival, 2.0),
        bar("copies alone", BarOwner::Floor, 0.5),
    ];
    bars[1].span.max = 3.0;
    let title = "download";
    chart_of(vec![BarGroup { title, bars }])
}

#[test]
fn bars_are_as_long_as_the_figures() {
    let svg = small().to_svg();
    let lengths = BarOwner::ALL.map(|owner| bars_of(&svg, owner));
    let [adit, rival, floor] = lengths.map(|bars| {
        assert_eq!(bars.len(), 1, "{svg}");
        bars[0]
    });
    assert!((rival - 2.0 * adit).abs() < 0.2 && (adit - 2.0 * floor).abs() < 0.2);
    // The axis ends at 3, where the whisker does.
    let marks: Vec<&str> = svg.split("class=\"dim mark\"").skip(1).collect();
    assert!(marks.last().unwrap().contains(">3<"), "{svg}");
    let axis = numbers_of(marks.last().unwrap(), "x")[0] - numbers_of(marks[0], "x")[0];
    assert!((axis - 3.0 * adit).abs() < 0.2, "{axis} {adit}");
    assert_eq!(svg.matches("class=\"whisker\"").count(), 1);
    for shown in ["1.00", "2.00", "0.500"] {
        assert!(texts(&svg).contains(&shown), "{shown} in {svg}");
    }
}

#[test]
fn a_chart_has_a_message_a_unit_and_a_legend() {
    let svg = small().to_svg();
    assert!(svg.contains("<title>CPU per GiB</title>"), "{svg}");
    let shown = texts(&svg);
    assert_eq!(shown[0], "CPU per GiB");
    for text in ["CPU seconds per GiB", "adit", "other programs", "download"] {
        assert!(shown.contains(&text), "{text} in {shown:?}");
    }
    assert!(shown.iter().any(|text| text.starts_with("reference: ")));
    assert_eq!(
        small().alt_text(),
        "CPU per GiB, download: adit 1.00, other 2.00, copies alone 0.500"
    );
    // One kind needs no legend.
    let bars = vec![bar("adit, one", BarOwner::Adit, 1.0)];
    let title = "x";
    let alone = chart_of(vec![BarGroup { title, bars }]).to_svg();
    assert!(!alone.contains("other programs") && !alone.contains("height=\"12\""));
}

/// Each kind differs in colour and in pattern, in either scheme.
#[test]
fn kinds_differ_in_light_and_dark() {
    let svg = small().to_svg();
    let (light, dark) = svg
        .split_once("@media (prefers-color-scheme:dark){")
        .unwrap();
    for scheme in [light, dark] {
        let rule = |class: &str| {
            let rest = scheme.split_once(&format!(".{class}{{")).unwrap().1;
            rest.split('}').next().unwrap().to_owned()
        };
        let rules = [
            "adit",
            "rival",
            "rival-line",
            "floor",
            "floor-dot",
            "page",
            "ink",
        ]
        .map(rule);
        for (at, one) in rules.iter().enumerate() {
            assert!(!rules[..at].contains(one), "{one} twice in {scheme}");
        }
    }
    let colours = |scheme: &str| -> Vec<String> {
        let parts = scheme.split('#').skip(1);
        parts
            .filter_map(|part| Some(part.get(..6)?.to_owned()))
            .collect()
    };
    let rules = dark.split("</style>").next().unwrap();
    for colour in colours(rules) {
        assert!(
            !colours(light).contains(&colour),
            "{colour} in both schemes"
        );
    }
    for owner in [BarOwner::Rival, BarOwner::Floor] {
        let pattern = format!("<pattern id=\"{}\"", owner.class());
        assert!(svg.contains(&pattern), "{pattern} in {svg}");
        let fill = format!("fill=\"url(#{})\"", owner.class());
        // Its bar and its legend.
        assert_eq!(svg.matches(&fill).count(), 2, "{fill} in {svg}");
    }
    assert!(
        dark.contains("class=\"adit\" x="),
        "adit's bars have no pattern"
    );
}

#[test]
fn many_bars_make_no_tall_chart() {
    for count in [1, 5, 20, 60] {
        let bars = (0..count).map(|at| bar("adit", BarOwner::Adit, f64::from(at)));
        let groups = vec![
            BarGroup {
                title: "a",
                bars: bars.collect(),
            },
            BarGroup {
                title: "b",
                bars: vec![bar("other", BarOwner::Rival, 1.0)],
            },
        ];
        check_bounds(&chart_of(groups).to_svg());
    }
}

fn check_bounds(svg: &str) -> f64 {
    let view = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
    let mut view = view.split('"').next().unwrap().split(' ');
    let mut next = || view.next().unwrap().parse::<f64>().unwrap();
    let (width, height) = (next(), next());
    assert_eq!(width, WIDTH);
    assert!(
        height <= MAX_HEIGHT && height * 4.0 <= width * 3.0,
        "{height}"
    );
    assert!(numbers_of(svg, "y").into_iter().all(|y| y < height));
    assert!(numbers_of(svg, "x").into_iter().all(|x| x < width));
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    height
}

#[test]
fn names_cannot_break_out() {
    let bars = vec![bar("\"x\" <b>", BarOwner::Rival, 1.0)];
    let title = "a<b & c";
    let svg = chart_of(vec![BarGroup { title, bars }]).to_svg();
    assert!(svg.contains("a&lt;b &amp; c") && svg.contains("&quot;x&quot; &lt;b&gt;"));
    assert!(!svg.contains("<b>"), "{svg}");
}

#[test]
fn bars_are_the_figures_of_a_page() {
    let page = "**2022-blake3-aes-128-gcm, 1 stream, down**\n\n\
        | | Gbit/s ↑ | CPU s/GiB, both ↓ |\n|---|--:|--:|\n| adit | 10 | 1.05 (1.00–1.10) |\n\
        | no relay | 30 | 9 |\n| bare records | 11 | 0.94 |\n| sing-box | 5 | – |\n";
    let charts = draw_charts(Suite::SsTcp, page);
    let names: Vec<&str> = charts.iter().map(|chart| &*chart.name).collect();
    assert_eq!(names, ["ss-tcp.svg"]);
    assert!(
        charts[0]
            .alt_text
            .ends_with("one stream, download: adit 1.05, copies and cipher alone 0.940"),
        "{}",
        charts[0].alt_text
    );
    assert!(charts[0].svg.contains("the line spans all rounds"));
    assert_eq!(draw_charts(Suite::Idle, page), []);
}

#[test]
fn columns_belong_to_implementations() {
    assert_eq!(column_part("ns/op", "ns/op"), Some("adit"));
    assert_eq!(column_part("ns/op, kcp-go", "ns/op"), Some("kcp-go"));
    assert_eq!(column_part("ns/op, at most", "ns/op"), None);
    assert_eq!(column_part("allocations/op", "ns/op"), None);
    assert_eq!(column_part("sing-box", ""), Some("sing-box"));
}

/// Prefixes of identifiers that are not meant for readers.
const IDS: [&str; 10] = [
    "code-",
    "stage-",
    "seal-",
    "open-",
    "packet-",
    "cipher-",
    "vandermonde-",
    "-one-",
    "bare records",
    "bare splice",
];

#[test]
fn every_chart_of_the_documents_is_flat_and_readable() {
    for &suite in Suite::value_variants() {
        let path = workspace_root().join(format!("docs/benchmarks/{suite}.md"));
        let page = fs::read_to_string(path).unwrap();
        let tables = page_tables::parse_tables(&page);
        for (at, plot) in chart_list::charts_of(suite).enumerate() {
            let own = suite.to_string();
            match at {
                0 => assert_eq!(plot.name, own),
                _ => assert!(plot.name.starts_with(&format!("{own}-")), "{}", plot.name),
            }
            for source in plot.groups {
                assert!(
                    !source_bars(source, &tables).is_empty(),
                    "{}: {source:?}",
                    plot.name
                );
            }
            let svg = build_chart(plot, &tables).unwrap().to_svg();
            let height = check_bounds(&svg);
            let shown = texts(&svg);
            let bars: usize = BarOwner::ALL
                .iter()
                .map(|owner| bars_of(&svg, *owner).len())
                .sum();
            assert!(height / bars as f64 > 20.0, "{}: bars too thin", plot.name);
            for id in IDS {
                let found = shown.iter().find(|text| text.contains(id));
                assert_eq!(found, None, "{}", plot.name);
            }
            assert!(shown.contains(&&*escape_xml(plot.unit)), "{}", plot.name);
            assert!(svg.contains("class=\"adit\""), "{}: adit's bar", plot.name);
        }
    }
}
