//! Accepted and refused command lines.

use super::*;

fn settings(words: &[&str]) -> clap::error::Result<BenchSettings> {
    let words = ["bench"].iter().chain(words);
    BenchArgs::try_parse_from(words).map(|args| args.settings)
}

#[test]
fn bytes_have_units() {
    assert_eq!(parse_bytes("100000"), Ok(100_000));
    assert_eq!(parse_bytes("64KiB"), Ok(64 << 10));
    assert_eq!(parse_bytes("3MiB"), Ok(3 << 20));
    assert_eq!(parse_bytes("2GiB"), Ok(2 << 30));
    for bad in ["", "MiB", "1MB", "-1", "1", "99999999999GiB"] {
        assert!(parse_bytes(bad).is_err(), "{bad}");
    }
}

#[test]
fn lists_are_separated_by_commas() {
    let words = ["--suite", "ss-tcp,idle", "--method", "aes-256-gcm"];
    let settings = settings(&words).unwrap();
    assert_eq!(settings.suites(), [Suite::SsTcp, Suite::Idle]);
    let names: Vec<_> = settings.methods().iter().map(|one| one.name).collect();
    assert_eq!(names, ["aes-256-gcm"]);
    assert_eq!(settings.rounds(), 5);
}

#[test]
fn smoke_is_small_and_what_is_typed_wins() {
    let small = settings(&["--smoke"]).unwrap();
    assert_eq!(small.extent().held, [50]);
    assert_eq!((small.rounds(), small.amounts().bytes), (1, 8 << 20));
    assert_eq!(small.suites(), Suite::value_variants());
    let typed = settings(&["--smoke", "--rounds", "3", "--bytes", "1MiB"]).unwrap();
    assert_eq!((typed.rounds(), typed.amounts().bytes), (3, 1 << 20));
}

#[test]
fn the_slow_carry_less_but_something() {
    let all = LoadAmounts::default_for(1024 * MIB);
    assert_eq!(all.divided_by(1), all);
    let fewer = all.divided_by(1024);
    assert_eq!((fewer.bytes, fewer.warm_up), (MIB, MIN_STREAM_BYTES));
    assert_eq!(
        LoadAmounts::smoke_for(64 << 10).divided_by(1024).bytes,
        64 << 10
    );
}

#[test]
fn the_older_build_is_measured_only_if_it_is_named() {
    assert!(!settings(&["--only", "adit"]).unwrap().includes(BEFORE));
    assert!(!settings(&[]).unwrap().includes(BEFORE));
    let words = ["--only", "adit", "--before", "old"];
    assert!(settings(&words).unwrap().includes(BEFORE));
}

#[test]
fn mistakes_are_refused() {
    for bad in [
        &["--suite", "ss-tpc"][..],
        &["--rounds", "0"],
        &["--bytes", "1"],
        &["--method", "rot13"],
        &["--only", "unknown"],
        &["--only", BEFORE],
        &["--before", "old", "--write-docs"],
        &["--smoke", "--write-docs"],
        &["--bless"],
        &["hot", "seal"],
        &["--instructions", "--suite", "idle"],
    ] {
        assert!(settings(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn only_narrows() {
    let all = settings(&[]).unwrap();
    assert!(all.includes("adit") && all.includes("sing-box"));
    let one = settings(&["--only", "sing-box"]).unwrap();
    assert!(!one.includes("adit") && one.includes("sing-box"));
}
