//! Tests of charts: lengths, bounds, schemes, words.

use std::fs;

use clap::ValueEnum;

use super::draw::{TALLEST, WIDTH};
use super::words::Whose;
use super::*;
use crate::places::root;

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
fn bars_of(svg: &str, whose: Whose) -> Vec<f64> {
    let class = format!("class=\"{}\"", whose.class());
    let bars = svg.split("<rect").filter(|part| {
        let element = part.split('>').next().unwrap_or_default();
        // Legends are 22 wide and 12 high.
        element.contains(&class) && !element.contains("width=\"22\" height=\"12\"")
    });
    bars.filter_map(|bar| numbers_of(bar, "width").first().copied())
        .collect()
}

fn bar(name: &str, whose: Whose, median: f64) -> Bar {
    let span = Span {
        median,
        min: median,
        max: median,
    };
    let name = name.to_owned();
    Bar { name, whose, span }
}

fn of(groups: Vec<Group>) -> Chart {
    Chart {
        title: "CPU per GiB",
        subtitle: "all together; less is better".to_owned(),
        unit: "CPU seconds per GiB",
        groups,
    }
}

fn small() -> Chart {
    let mut bars = vec![
        bar("adit", Whose::Adit, 1.0),
        bar("other", Whose::Rival, 2.0),
        bar("copies alone", Whose::Floor, 0.5),
    ];
    bars[1].span.max = 3.0;
    let title = "download";
    of(vec![Group { title, bars }])
}

#[test]
fn bars_are_as_long_as_the_figures() {
    let svg = small().draw();
    let lengths = Whose::ALL.map(|whose| bars_of(&svg, whose));
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
    let svg = small().draw();
    assert!(svg.contains("<title>CPU per GiB</title>"), "{svg}");
    let shown = texts(&svg);
    assert_eq!(shown[0], "CPU per GiB");
    for text in ["CPU seconds per GiB", "adit", "other programs", "download"] {
        assert!(shown.contains(&text), "{text} in {shown:?}");
    }
    assert!(shown.iter().any(|text| text.starts_with("reference: ")));
    assert_eq!(
        small().in_words(),
        "CPU per GiB, download: adit 1.00, other 2.00, copies alone 0.500"
    );
    // One kind needs no legend.
    let bars = vec![bar("adit, one", Whose::Adit, 1.0)];
    let title = "x";
    let alone = of(vec![Group { title, bars }]).draw();
    assert!(!alone.contains("other programs") && !alone.contains("height=\"12\""));
}

/// Each kind differs in colour and in pattern, in either scheme.
#[test]
fn kinds_are_told_apart_in_light_and_dark() {
    let svg = small().draw();
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
    for whose in [Whose::Rival, Whose::Floor] {
        let pattern = format!("<pattern id=\"{}\"", whose.class());
        assert!(svg.contains(&pattern), "{pattern} in {svg}");
        let fill = format!("fill=\"url(#{})\"", whose.class());
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
        let bars = (0..count).map(|at| bar("adit", Whose::Adit, f64::from(at)));
        let groups = vec![
            Group {
                title: "a",
                bars: bars.collect(),
            },
            Group {
                title: "b",
                bars: vec![bar("other", Whose::Rival, 1.0)],
            },
        ];
        check_bounds(&of(groups).draw());
    }
}

fn check_bounds(svg: &str) -> f64 {
    let view = svg.split("viewBox=\"0 0 ").nth(1).unwrap();
    let mut view = view.split('"').next().unwrap().split(' ');
    let mut next = || view.next().unwrap().parse::<f64>().unwrap();
    let (width, height) = (next(), next());
    assert_eq!(width, WIDTH);
    assert!(height <= TALLEST && height * 4.0 <= width * 3.0, "{height}");
    assert!(numbers_of(svg, "y").into_iter().all(|y| y < height));
    assert!(numbers_of(svg, "x").into_iter().all(|x| x < width));
    assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    height
}

#[test]
fn names_cannot_break_out() {
    let bars = vec![bar("\"x\" <b>", Whose::Rival, 1.0)];
    let title = "a<b & c";
    let svg = of(vec![Group { title, bars }]).draw();
    assert!(svg.contains("a&lt;b &amp; c") && svg.contains("&quot;x&quot; &lt;b&gt;"));
    assert!(!svg.contains("<b>"), "{svg}");
}

#[test]
fn bars_are_the_figures_of_a_page() {
    let page = "**2022-blake3-aes-128-gcm, 1 stream, down**\n\n\
        | | Gbit/s ↑ | CPU s/GiB, both ↓ |\n|---|--:|--:|\n| adit | 10 | 1.05 (1.00–1.10) |\n\
        | no relay | 30 | 9 |\n| bare records | 11 | 0.94 |\n| sing-box | 5 | – |\n";
    let drawings = drawings(Suite::SsTcp, page);
    let names: Vec<&str> = drawings.iter().map(|chart| &*chart.name).collect();
    assert_eq!(names, ["ss-tcp.svg"]);
    assert!(
        drawings[0]
            .words
            .ends_with("one stream, download: adit 1.05, copies and cipher alone 0.940"),
        "{}",
        drawings[0].words
    );
    assert!(drawings[0].svg.contains("the line spans all rounds"));
    assert_eq!(super::drawings(Suite::Idle, page), []);
}

#[test]
fn columns_are_whose_part_they_are() {
    assert_eq!(part("ns/op", "ns/op"), Some("adit"));
    assert_eq!(part("ns/op, kcp-go", "ns/op"), Some("kcp-go"));
    assert_eq!(part("ns/op, at most", "ns/op"), None);
    assert_eq!(part("allocations/op", "ns/op"), None);
    assert_eq!(part("sing-box", ""), Some("sing-box"));
}

/// Beginnings of what programs print for other programs.
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
fn every_chart_of_the_documents_is_flat_and_speaks_to_readers() {
    for &suite in Suite::value_variants() {
        let path = root().join(format!("docs/benchmarks/{suite}.md"));
        let page = fs::read_to_string(path).unwrap();
        let tables = read::tables(&page);
        for (at, plot) in list::of(suite).enumerate() {
            let own = suite.to_string();
            match at {
                0 => assert_eq!(plot.name, own),
                _ => assert!(plot.name.starts_with(&format!("{own}-")), "{}", plot.name),
            }
            for source in plot.groups {
                assert!(
                    !bars(source, &tables).is_empty(),
                    "{}: {source:?}",
                    plot.name
                );
            }
            let svg = chart(plot, &tables).unwrap().draw();
            let height = check_bounds(&svg);
            let shown = texts(&svg);
            let bars: usize = Whose::ALL
                .iter()
                .map(|whose| bars_of(&svg, *whose).len())
                .sum();
            assert!(height / bars as f64 > 20.0, "{}: bars too thin", plot.name);
            for id in IDS {
                let found = shown.iter().find(|text| text.contains(id));
                assert_eq!(found, None, "{}", plot.name);
            }
            assert!(shown.contains(&&*escaped(plot.unit)), "{}", plot.name);
            assert!(svg.contains("class=\"adit\""), "{}: adit's bar", plot.name);
        }
    }
}
