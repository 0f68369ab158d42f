//! The KCP counters: a CSV row in each period, and all of them on SIGUSR1.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use adit_engine::Engine;
use adit_kcp::Counts;
use adit_net::system;
use adit_wire::UnixTime;

/// Writes a row in each period. Never returns.
pub(super) async fn write_rows(path: PathBuf, period: Duration, engine: Arc<Engine>) {
    let mut ticks = tokio::time::interval(period);
    loop {
        ticks.tick().await;
        if let Err(why) = append_row(&path, system::unix_now(), &engine.kcp_counts()) {
            tracing::warn!("cannot write the counters to {}: {why}", path.display());
        }
    }
}

/// Prints all counters on each SIGUSR1. Never returns.
#[cfg(unix)]
pub(super) async fn tell(engine: Arc<Engine>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut asked) = signal(SignalKind::user_defined1()) else {
        return;
    };
    while asked.recv().await.is_some() {
        let counts = engine.kcp_counts();
        for (name, value) in Counts::NAMES.iter().zip(counts.values()) {
            eprintln!("{name}: {value}");
        }
    }
}

/// Never returns: the system has no such signal.
#[cfg(not(unix))]
pub(super) async fn tell(_: Arc<Engine>) {
    std::future::pending().await
}

fn append_row(path: &Path, now: UnixTime, counts: &Counts) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path_at(path, now))?;
    let mut text = String::new();
    if file.metadata()?.len() == 0 {
        text += "Unix,";
        text += &Counts::NAMES.join(",");
        text += "\n";
    }
    text += &now.0.to_string();
    for value in counts.values() {
        text += ",";
        text += &value.to_string();
    }
    text += "\n";
    file.write_all(text.as_bytes())
}

/// Returns the path with the parts of Go's reference time in the file name replaced by those of `now`.
fn path_at(path: &Path, now: UnixTime) -> PathBuf {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return path.to_owned();
    };
    let (year, month, day) = now.utc_date();
    let of_day = now.0 % 86_400;
    let parts = [
        ("2006", format!("{year:04}")),
        ("01", format!("{month:02}")),
        ("02", format!("{day:02}")),
        ("15", format!("{:02}", of_day / 3600)),
        ("04", format!("{:02}", of_day / 60 % 60)),
        ("05", format!("{:02}", of_day % 60)),
    ];
    let (mut out, mut rest) = (String::new(), name);
    while let Some(first) = rest.chars().next() {
        match parts.iter().find(|(mark, _)| rest.starts_with(mark)) {
            Some((mark, value)) => {
                out += value;
                rest = rest.get(mark.len()..).unwrap_or_default();
            }
            None => {
                out.push(first);
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
            }
        }
    }
    path.with_file_name(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_the_date() {
        let at = |text: &str, seconds| {
            let path = path_at(Path::new(text), UnixTime(seconds));
            path.to_str().unwrap().to_owned()
        };
        // 2024-02-29 23:59:58 and 2000-03-01 00:00:00, both UTC.
        assert_eq!(
            at("/2006/snmp-20060102-150405.log", 1_709_251_198),
            "/2006/snmp-20240229-235958.log"
        );
        assert_eq!(at("2006-01-02", 951_868_800), "2000-03-01");
        assert_eq!(at("x.csv", 0), "x.csv");
    }
}
