//! The summary of a suite: the few most important figures of its many tables, with a column for
//! adit and for each rival.

use super::suite_page::markdown_grid;
use crate::figures::{
    AT_MOST, CONNECTIONS, CPU_PER_CONNECTION, CPU_PER_GIB, CPU_SHARE, GBIT, MB_PER_SECOND,
    MEMORY_PER_IDLE, Metric, NS_PER_OP, OVER_CIPHER, P99, PER_SESSION, Quantity, RoundSpread,
    SEAL_RATE, STORE_CPU, WHOLE_PARTS, format_short,
};
use crate::peers::is_floor;
use crate::sample_log::{CaseTable, SampleLog};
use crate::suite::{NO_RELAY, Suite};

/// The rows: a case and a quantity. If the rows of a case are steps and not implementations, the
/// step follows a colon.
pub(super) const HEADLINES: &[(Suite, &[(&str, Quantity)])] = &[
    (
        Suite::SsTcp,
        &[
            ("2022-blake3-aes-128-gcm, 1 stream, down", GBIT),
            ("2022-blake3-aes-128-gcm, 1 stream, down", CPU_PER_GIB),
            ("2022-blake3-aes-128-gcm, 8 streams, down", CPU_PER_GIB),
            ("chacha20-ietf-poly1305, 8 streams, down", CPU_PER_GIB),
        ],
    ),
    (
        Suite::SsRelay,
        &[
            ("2022-blake3-aes-128-gcm, 1 stream, down", GBIT),
            ("2022-blake3-aes-128-gcm, 8 streams, down", CPU_PER_GIB),
        ],
    ),
    (
        Suite::Socks,
        &[
            ("SOCKS5 CONNECT, 1 stream, down", GBIT),
            ("SOCKS5 CONNECT, 1 stream, down", CPU_PER_GIB),
            ("SOCKS5 CONNECT, 8 streams, down", CPU_PER_GIB),
        ],
    ),
    (
        Suite::SsUdp,
        &[
            ("2022-blake3-aes-128-gcm, down, flood", GBIT),
            ("2022-blake3-aes-128-gcm, down, 200 Mbit/s", CPU_PER_GIB),
            ("chacha20-ietf-poly1305, down, 64 under way", CPU_PER_GIB),
        ],
    ),
    (
        Suite::SsTable,
        &[
            ("2022-blake3-aes-256-gcm, TCP, down", CPU_PER_GIB),
            ("2022-blake3-chacha20-poly1305, TCP, down", CPU_PER_GIB),
            ("aes-256-gcm, TCP, down", CPU_PER_GIB),
            ("aes-256-gcm, UDP, down", CPU_PER_GIB),
        ],
    ),
    (
        Suite::Ssr,
        &[
            ("aes-256-ctr, down", GBIT),
            ("aes-256-ctr + auth_sha1_v4, down", GBIT),
            ("none + auth_chain_a, down", GBIT),
        ],
    ),
    (
        Suite::Ssh,
        &[
            ("aes128-gcm, a program, down", CPU_PER_GIB),
            ("aes128-gcm, -L, down", CPU_PER_GIB),
            ("chacha20-poly1305, -L, down", CPU_PER_GIB),
            (
                "aes128-gcm, -L, 1 Gbit/s, 100ms there and back, down",
                MB_PER_SECOND,
            ),
        ],
    ),
    (
        Suite::Idle,
        &[
            ("SOCKS5 relay, 1000 idle connections", MEMORY_PER_IDLE),
            (
                "SOCKS5 client, 2022-blake3-aes-128-gcm, 1000 idle connections",
                MEMORY_PER_IDLE,
            ),
        ],
    ),
    (
        Suite::Lossy,
        &[
            (
                "100 Mbit/s, 50ms there and back, 5 % lost, down",
                MB_PER_SECOND,
            ),
            (
                "100 Mbit/s, 100ms there and back, 5 % lost, down",
                MB_PER_SECOND,
            ),
            ("64 bytes there and back over 50ms, 5 % lost", P99),
        ],
    ),
    (
        Suite::Rate,
        &[
            ("SOCKS5 relay", CONNECTIONS),
            ("tunnel, 2022-blake3-aes-128-gcm", CONNECTIONS),
            ("tunnel, 2022-blake3-aes-128-gcm", CPU_PER_CONNECTION),
            ("tunnel, chacha20-ietf-poly1305", CPU_PER_CONNECTION),
        ],
    ),
    (
        Suite::Latency,
        &[
            ("SOCKS5, beside four paced flows", P99),
            ("Shadowsocks, beside four paced flows", P99),
            ("SSH -L, beside four paced flows", P99),
            ("KCP, beside four paced flows", P99),
        ],
    ),
    (
        Suite::Workers,
        &[
            (
                "SOCKS5 client and server, 2022-blake3-aes-128-gcm, 8 connections",
                CONNECTIONS,
            ),
            (
                "SOCKS5 client and server, 2022-blake3-aes-128-gcm, 8 connections",
                GBIT,
            ),
        ],
    ),
    (
        Suite::Crypto,
        &[
            ("messages of 1,400 B: aes-128-gcm", SEAL_RATE),
            ("messages of 16 KiB: aes-128-gcm", SEAL_RATE),
            ("messages of 16 KiB: chacha20-poly1305", SEAL_RATE),
        ],
    ),
    (
        Suite::Cpu,
        &[
            ("KCP, a datagram of 1,400 B: seal-aes", NS_PER_OP),
            (
                "forward error correction, for each datagram of 1,400 B: \
                 code-encode-vandermonde-10+3",
                NS_PER_OP,
            ),
            ("Shadowsocks, 1,400 B: cipher-chacha20-poly1305", NS_PER_OP),
        ],
    ),
    (
        Suite::Headers,
        &[
            ("keys and headers: salt of 16 B, BLAKE3 subkey", NS_PER_OP),
            (
                "packets of 1,400 B: 2022-blake3-aes-128-gcm, seal",
                NS_PER_OP,
            ),
            (
                "packets of 1,400 B: 2022-blake3-aes-128-gcm, seal",
                OVER_CIPHER,
            ),
        ],
    ),
    (
        Suite::Kcp,
        &[
            (
                "kcptun's tunnel, fast3, aes, FEC 10+3, 1 stream, down",
                GBIT,
            ),
            (
                "kcptun's tunnel, fast3, aes, FEC 10+3, 1 stream, down",
                CPU_PER_GIB,
            ),
            ("a server with 5000 idle sessions, aes, FEC 10+3", CPU_SHARE),
            (
                "a server with 5000 idle sessions, aes, FEC 10+3",
                PER_SESSION,
            ),
        ],
    ),
    (
        Suite::Fec,
        &[
            (
                "the codes, for each datagram of 1,400 B: code-encode-vandermonde-10+3",
                NS_PER_OP,
            ),
            (
                "the codes, for each datagram of 1,400 B: code-decode-3-vandermonde-10+3",
                NS_PER_OP,
            ),
        ],
    ),
    (
        Suite::Users,
        &[
            ("a handshake with identity headers: 10,000 users", NS_PER_OP),
            (
                "a handshake in the AEAD edition, users found by trial: 100 users, a new address",
                NS_PER_OP,
            ),
        ],
    ),
    (
        Suite::Fleet,
        &[
            (
                "calls of the store: a batch of 1,000 users, per user",
                STORE_CPU,
            ),
            (
                "calls of the store: a question for changes with one change",
                STORE_CPU,
            ),
        ],
    ),
];

/// Returns a table with a link to all others of the suite. Cases without a measurement have no row.
pub(super) fn suite_summary(journal: &SampleLog, suite: Suite) -> String {
    let tables = journal.case_tables(suite);
    let headlines = HEADLINES.iter().filter(|(of, _)| *of == suite);
    let rows: Vec<_> = headlines
        .flat_map(|(_, rows)| *rows)
        .map(|(case, quantity)| (case, quantity, summary_figures(&tables, case, *quantity)))
        .filter(|(.., figures)| !figures.is_empty())
        .collect();
    let mut columns: Vec<&str> = Vec::new();
    for (who, _) in rows.iter().flat_map(|(.., figures)| figures) {
        if !columns.contains(who) {
            columns.push(who);
        }
    }
    let corner = format!("[{}](benchmarks/{suite}.md)", suite.title());
    let cells = |own: Vec<(&str, RoundSpread)>| {
        let cell = |column: &&str| own.iter().find(|(who, _)| who == column);
        let shown =
            |column| cell(column).map_or_else(|| "–".to_owned(), |own| format_short(own.1.median));
        columns.iter().map(shown).collect()
    };
    let rows = rows.into_iter().map(|(case, quantity, figures)| {
        let name = format!("{case}: {} {}", quantity.title, quantity.arrow());
        (name, cells(figures))
    });
    markdown_grid(&corner, columns.iter().copied(), rows)
}

/// Returns the implementations and their figures: of all processes of each implementation together,
/// or of a step of each.
fn summary_figures<'a>(
    tables: &'a [CaseTable],
    case: &str,
    quantity: Quantity,
) -> Vec<(&'a str, RoundSpread)> {
    let (case, step) = match case.split_once(": ") {
        Some((case, step)) => (case, Some(step)),
        None => (case, None),
    };
    let Some(table) = tables.iter().find(|table| table.case == case) else {
        return Vec::new();
    };
    let Some(step) = step else {
        let rivals = table
            .rows
            .iter()
            .filter(|row| row.implementation != NO_RELAY && !is_floor(&row.implementation));
        return rivals
            .filter_map(|row| {
                let figure = table.figure(&row.implementation, quantity, &WHOLE_PARTS)?;
                Some((row.implementation.as_str(), figure))
            })
            .collect();
    };
    let whose = |metric: &Metric| match metric.part {
        "" => "adit",
        part => part,
    };
    let row = table.rows.iter().filter(|row| row.implementation == step);
    let cells = row.flat_map(|row| table.columns.iter().zip(&row.cells));
    cells
        .filter(|(metric, _)| metric.quantity == quantity && metric.part != AT_MOST)
        .filter_map(|(metric, cell)| Some((whose(metric), (*cell)?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{figures_by_part, figures_with_sum, whole_figure};

    #[test]
    fn each_implementation_has_a_column() {
        let (first, last) = (
            "2022-blake3-aes-128-gcm, 1 stream, down",
            "chacha20-ietf-poly1305, 8 streams, down",
        );
        let cost = |cost| figures_with_sum(CPU_PER_GIB, &[("client", cost), ("server", cost)]);
        let mut journal = SampleLog::default();
        for (case, who, figures) in [
            (first, "adit", vec![whole_figure(GBIT, 8.0)]),
            (first, "no relay", vec![whole_figure(GBIT, 80.0)]),
            (first, "bare records", vec![whole_figure(GBIT, 9.0)]),
            ("another case", "third", vec![whole_figure(GBIT, 1.0)]),
            (last, "adit", cost(0.5)),
            (last, "other", cost(1.0)),
        ] {
            journal.record_outcome(Suite::SsTcp, case, who, 1, Ok(figures));
        }
        assert_eq!(
            suite_summary(&journal, Suite::SsTcp),
            "| [Shadowsocks over TCP](benchmarks/ss-tcp.md) | adit | other |\n\
             |---|--:|--:|\n\
             | 2022-blake3-aes-128-gcm, 1 stream, down: Gbit/s ↑ | 8.00 | – |\n\
             | chacha20-ietf-poly1305, 8 streams, down: CPU s/GiB ↓ | 1.00 | 2.00 |\n"
        );
    }

    #[test]
    fn steps_are_whose_part_they_are() {
        let codes = "the codes, for each datagram of 1,400 B";
        let step = "code-encode-vandermonde-10+3";
        let times = figures_by_part(
            NS_PER_OP,
            &[("adit", 17.0), ("kcp-go", 98.0), (AT_MOST, 120.0)],
        );
        let mut journal = SampleLog::default();
        journal.record_outcome(Suite::Fec, codes, step, 1, Ok(times));
        let text = suite_summary(&journal, Suite::Fec);
        assert!(text.contains(" | adit | kcp-go |\n"), "{text}");
        assert!(text.contains("10+3: ns/op ↓ | 17.0 | 98.0 |\n"), "{text}");
        let (size, cipher) = ("messages of 16 KiB", "aes-128-gcm");
        journal.record_outcome(
            Suite::Crypto,
            size,
            cipher,
            1,
            Ok(vec![whole_figure(SEAL_RATE, 2.0)]),
        );
        let text = suite_summary(&journal, Suite::Crypto);
        assert!(text.contains(" | adit |\n"), "{text}");
        assert!(text.contains(": seal GB/s ↑ | 2.00 |\n"), "{text}");
    }
}
