//! The MACs alone: adit's as reported by its own command, compared with OpenSSL's.

use std::path::Path;

use anyhow::{Context, Result};

use crate::figures::{Figures, NS_PER_OP, as_float, whole_figure};
use crate::locations;
use crate::suite::memory_steps::{self, MemoryStep};
use crate::suite::{BenchRun, Suite};

const BYTES: [u64; 2] = [32, 1024];
/// OpenSSL's names of MACs that adit measures too.
const OPENSSL: [(&str, &str); 2] = [("hmac-sha2-256", "sha256"), ("hmac-md5", "md5")];

/// Measures every MAC at each length.
pub(super) fn run_macs(bench: &mut BenchRun) {
    let adit = memory_steps::adit_program(bench);
    let openssl = locations::find_program("openssl", Path::new(""));
    let millis = (bench.settings.amounts().cipher_millis * 3).to_string();
    for round in 1..=bench.settings.rounds() {
        if let Some(adit) = &adit {
            let args = [
                "bench", "mac", "--json", "--bytes", "32,1024", "--millis", &millis,
            ];
            let told = locations::output_of(adit, &args);
            match memory_steps::parse_steps(&told) {
                Ok(rows) => {
                    // SSH does not use the others.
                    let of_ssh = |step: &MemoryStep| {
                        let name = &*step.name;
                        name.starts_with("umac") || OPENSSL.iter().any(|(known, _)| *known == name)
                    };
                    for MemoryStep { name, bytes, ns } in rows.into_iter().filter(of_ssh) {
                        let figures = Ok(vec![whole_figure(NS_PER_OP, ns)]);
                        bench.journal.record_outcome(
                            Suite::Ssh,
                            &case_name(&name, bytes),
                            "adit",
                            round,
                            figures,
                        );
                    }
                }
                Err(why) => {
                    bench
                        .journal
                        .record_outcome(Suite::Ssh, "MACs", "adit", round, Err(why));
                }
            }
        }
        let Some(openssl) = openssl
            .as_deref()
            .filter(|_| bench.settings.includes("OpenSSH"))
        else {
            continue;
        };
        for (name, digest) in OPENSSL {
            for bytes in BYTES {
                let figures = openssl_speed(openssl, digest, bytes);
                bench.journal.record_outcome(
                    Suite::Ssh,
                    &case_name(name, bytes),
                    "OpenSSL",
                    round,
                    figures,
                );
            }
        }
    }
}

fn case_name(name: &str, bytes: u64) -> String {
    format!("{name}, {bytes} bytes")
}

/// Runs `openssl speed` for one second.
fn openssl_speed(openssl: &Path, digest: &str, bytes: u64) -> Result<Figures> {
    let bytes_word = bytes.to_string();
    let args = [
        "speed",
        "-mr",
        "-seconds",
        "1",
        "-bytes",
        &bytes_word,
        "-hmac",
        digest,
    ];
    let told = locations::output_of(openssl, &args);
    let per_second = parse_rate(&told)
        .with_context(|| format!("cannot parse the output of `openssl speed`: `{told}`"))?;
    Ok(vec![whole_figure(
        NS_PER_OP,
        as_float(bytes) / per_second * 1e9,
    )])
}

/// Parses bytes per second, the last field of the line of results.
fn parse_rate(told: &str) -> Option<f64> {
    let line = told.lines().rfind(|line| line.starts_with("+F:"))?;
    let rate: f64 = line.rsplit(':').next()?.trim().parse().ok()?;
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_programs_say_is_read() {
        let told = "+DT:hmac(sha256):1:1024\n+R:5:x:1\n+H:1024\n+F:26:hmac(sha256):410000000.00";
        assert_eq!(parse_rate(told), Some(410_000_000.0));
        assert_eq!(parse_rate("no such digest"), None);
    }
}
