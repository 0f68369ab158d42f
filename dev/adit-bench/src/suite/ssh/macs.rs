//! The MACs alone: adit's as reported by its own command, compared with OpenSSL's.

use std::path::Path;

use anyhow::{Context, Result};

use crate::figure::{Figures, NS_PER_OP, float, one};
use crate::places;
use crate::suite::steps::{self, Step};
use crate::suite::{Bench, Suite};

const BYTES: [u64; 2] = [32, 1024];
/// OpenSSL's names of MACs that adit measures too.
const OPENSSL: [(&str, &str); 2] = [("hmac-sha2-256", "sha256"), ("hmac-md5", "md5")];

/// Measures every MAC at each length.
pub(super) fn run(bench: &mut Bench) {
    let adit = steps::adit(bench);
    let openssl = places::find_program("openssl", Path::new(""));
    let millis = (bench.settings.amounts().cipher_millis * 3).to_string();
    for round in 1..=bench.settings.rounds() {
        if let Some(adit) = &adit {
            let args = [
                "bench", "mac", "--json", "--bytes", "32,1024", "--millis", &millis,
            ];
            let told = places::output_of(adit, &args);
            match steps::read(&told) {
                Ok(rows) => {
                    // SSH does not use the others.
                    let of_ssh = |step: &Step| {
                        let name = &*step.name;
                        name.starts_with("umac") || OPENSSL.iter().any(|(known, _)| *known == name)
                    };
                    for Step { name, bytes, ns } in rows.into_iter().filter(of_ssh) {
                        let figures = Ok(vec![one(NS_PER_OP, ns)]);
                        bench
                            .journal
                            .keep(Suite::Ssh, &case(&name, bytes), "adit", round, figures);
                    }
                }
                Err(why) => bench
                    .journal
                    .keep(Suite::Ssh, "MACs", "adit", round, Err(why)),
            }
        }
        let Some(openssl) = openssl
            .as_deref()
            .filter(|_| bench.settings.wants("OpenSSH"))
        else {
            continue;
        };
        for (name, digest) in OPENSSL {
            for bytes in BYTES {
                let figures = speed(openssl, digest, bytes);
                bench
                    .journal
                    .keep(Suite::Ssh, &case(name, bytes), "OpenSSL", round, figures);
            }
        }
    }
}

fn case(name: &str, bytes: u64) -> String {
    format!("{name}, {bytes} bytes")
}

/// Runs `openssl speed` for one second.
fn speed(openssl: &Path, digest: &str, bytes: u64) -> Result<Figures> {
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
    let told = places::output_of(openssl, &args);
    let per_second = rate(&told)
        .with_context(|| format!("cannot parse the output of `openssl speed`: `{told}`"))?;
    Ok(vec![one(NS_PER_OP, float(bytes) / per_second * 1e9)])
}

/// Parses bytes per second, the last field of the line of results.
fn rate(told: &str) -> Option<f64> {
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
        assert_eq!(rate(told), Some(410_000_000.0));
        assert_eq!(rate("no such digest"), None);
    }
}
