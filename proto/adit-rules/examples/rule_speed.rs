//! Measures decisions, memory and loading of a set of 100,000 names and 20,000 networks, or of the numbers
//! given as arguments: the best of several batches by the thread's CPU time.
//!
//! `cargo run --release -p adit-rules --example rule_speed [NAMES NETWORKS]`

use std::{env, hint::black_box};

use adit_rules::{Condition, Decision, Request, Rule, RuleList, RuleSet, RuleSetBuilder, read};
use adit_wire::Target;
use rustix::time::{ClockId, clock_gettime};

/// Number of batches of each measurement.
const BATCHES: u32 = 7;
/// Decisions of a batch.
const DECISIONS: usize = 200_000;
/// Distinct targets.
const TARGETS: usize = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = env::args().skip(1).map(|argument| argument.parse::<u32>());
    let names = numbers.next().transpose()?.unwrap_or(100_000);
    let networks = numbers.next().transpose()?.unwrap_or(20_000);

    let mut list = String::from("payload:\n");
    for number in 0..names {
        list.push_str(&format!("  - '+.{}'\n", name(number)));
    }
    let read_list = || {
        let limits = read::Limits::default();
        read::read_clash(list.as_bytes(), read::ClashBehavior::Domain, &limits)
    };
    let ns = best(1, || drop(black_box(read_list())));
    println!(
        "{names} names: read and compiled from {} bytes of YAML in {:.1} ms",
        list.len(),
        ns / 1e6
    );

    let build = || -> Result<RuleSet, Box<dyn std::error::Error>> {
        let mut set = RuleSetBuilder::new();
        for number in 0..names {
            set.add_domain(&name(number))?;
        }
        for number in 0..networks {
            let bits = mix(number) & 0xffff_ff00;
            set.add_network(&ipnet::Ipv4Net::new(bits.into(), 24)?.into());
        }
        Ok(set.build())
    };
    let set = build()?;
    println!(
        "{names} names and {networks} networks: {} entries, {} KiB",
        set.len(),
        set.memory() / 1024
    );

    let cache = set.to_cache();
    let ns = best(1, || {
        drop(black_box(RuleSet::from_cache(black_box(&cache))));
    });
    println!(
        "loaded from a cache of {} KiB in {:.2} ms",
        cache.len() / 1024,
        ns / 1e6
    );

    let own = |text: &str| -> Result<Rule, Box<dyn std::error::Error>> {
        let set = RuleSet::compile([Condition::parse(text)?])?;
        Ok(Rule {
            sets: vec![set.into()],
            and: Vec::new(),
            resolve: false,
        })
    };
    let mut rules = vec![own("*.lan")?, own(":25")?];
    rules.push(Rule {
        sets: vec![set.clone().into()],
        and: Vec::new(),
        resolve: false,
    });
    let rules = RuleList::new(rules);

    let known = |number: u32| format!("www.{}:443", name(number % names.max(1)));
    let unknown = |number: u32| format!("www.{}:443", name(number.wrapping_add(names)));
    let address = |number: u32| format!("{}:443", core::net::Ipv4Addr::from_bits(mix(number)));
    let kinds: [(&str, &dyn Fn(u32) -> String); 3] = [
        ("name in the set", &known),
        ("name not in the set", &unknown),
        ("address", &address),
    ];
    for (kind, target) in kinds {
        let targets = (0..).map(|number| target(mix(number) >> 4).parse::<Target>());
        let targets = targets.take(TARGETS).collect::<Result<Vec<_>, _>>()?;
        let mut found = 0;
        let ns = best(DECISIONS, || {
            for target in targets.iter().cycle().take(DECISIONS) {
                found += usize::from(set.matches(&Request::new(black_box(target))));
            }
        });
        let share = found * 100 / (BATCHES as usize * DECISIONS);
        println!("{kind:20} {ns:6.0} ns per decision, {share} % match");
        let mut decided = 0;
        let ns = best(DECISIONS, || {
            for target in targets.iter().cycle().take(DECISIONS) {
                let decision = rules.decide(&Request::new(black_box(target)));
                decided += usize::from(decision == Decision::Rule(2));
            }
        });
        assert_eq!(decided, found, "the list decides as its set");
        println!("{:20} {ns:6.0} ns per decision of three rules", "");
    }
    Ok(())
}

/// Returns a name of a length as in real lists.
fn name(number: u32) -> String {
    let bits = mix(number);
    let ending = ["com", "net", "org", "cn", "co.uk", "com.br", "de", "xyz"];
    let ending = ending[bits as usize % ending.len()];
    let word =
        ["shop", "track", "cdn", "media", "ads", "my", "the", "cloud"][(bits >> 3) as usize % 8];
    format!("{word}{number:x}-{:x}.{ending}", bits >> 20)
}

/// Spreads numbers, each to another one.
const fn mix(number: u32) -> u32 {
    let number = (number ^ (number >> 16)).wrapping_mul(0x7feb_352d);
    let number = (number ^ (number >> 15)).wrapping_mul(0x846c_a68b);
    number ^ (number >> 16)
}

/// Returns the nanoseconds of one of `count` operations of the best batch.
fn best(count: usize, mut batch: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = cpu_ns();
        batch();
        best = best.min((cpu_ns() - start) / count as f64);
    }
    best
}

fn cpu_ns() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}
