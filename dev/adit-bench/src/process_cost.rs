//! The cost of a process so far: processor time and memory, including all its descendants.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Fields of `/proc/PID/stat`: the parent, and clock ticks of user and system time together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessStat {
    parent: u32,
    /// Ticks of all its threads, including ended ones.
    own_ticks: u64,
    /// Ticks of its ended children.
    children_ticks: u64,
}

/// Resident memory in KiB, as the kernel counts it for the process: its sockets and pipes are not
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ProcessMemory {
    /// `VmRSS`: the current value.
    pub(crate) resident: u64,
    /// `VmHWM`: the highest value so far, or since [`forget_peak`].
    pub(crate) peak: u64,
}

/// Returns the user and system time of the process and of all its descendants.
///
/// `stat` includes all of it, in ticks of usually 10 ms, rounded down; `schedstat` has the
/// nanoseconds of the threads that still live. Neither reports too much, so the larger value is the
/// more accurate.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let nanos = |(id, stat): &(u32, ProcessStat)| {
        (stat.own_ticks * tick).max(threads_nanos(*id)) + stat.children_ticks * tick
    };
    Ok(Duration::from_nanos(
        process_tree_stats(pid)?.iter().map(nanos).sum(),
    ))
}

/// Returns the nanoseconds on a processor of all living threads; 0 if the kernel does not count
/// them.
fn threads_nanos(pid: u32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    tasks
        .filter_map(|task| {
            let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum()
}

/// Returns the memory of the process and of all its descendants, added up.
pub(crate) fn memory_usage(pid: u32) -> Result<ProcessMemory> {
    let mut sum = ProcessMemory::default();
    for (member, _) in process_tree_stats(pid)? {
        // A child may have ended since it was listed; the process itself must exist.
        match fs::read_to_string(format!("/proc/{member}/status")) {
            Ok(text) => {
                let one = parse_status(&text);
                sum.resident += one.resident;
                sum.peak += one.peak;
            }
            Err(why) if member == pid => return Err(why).context("cannot read its status"),
            Err(_) => {}
        }
    }
    Ok(sum)
}

/// Lets the peak of the process and of all its descendants begin anew: at the start of a program, its whole code may be
/// resident for a moment.
pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    for member in process_tree(pid)? {
        // proc(5): 5 resets the peak to the current value.
        match fs::write(format!("/proc/{member}/clear_refs"), "5") {
            Err(why) if member == pid => return Err(why).context("cannot reset its peak"),
            _ => {}
        }
    }
    Ok(())
}

/// Returns the ids of the process and its descendants.
pub(crate) fn process_tree(pid: u32) -> Result<Vec<u32>> {
    Ok(process_tree_stats(pid)?
        .into_iter()
        .map(|(id, _)| id)
        .collect())
}

fn process_tree_stats(pid: u32) -> Result<Vec<(u32, ProcessStat)>> {
    let root = read_stat(pid).with_context(|| format!("process {pid} has ended"))?;
    let all: Vec<(u32, ProcessStat)> = fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|id| Some((id, read_stat(id)?)))
        .collect();
    let mut family = vec![(pid, root)];
    let mut at = 0;
    while let Some(&(parent, _)) = family.get(at) {
        family.extend(all.iter().filter(|(_, stat)| stat.parent == parent));
        at += 1;
    }
    Ok(family)
}

fn read_stat(pid: u32) -> Option<ProcessStat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<ProcessStat> {
    // The second field is the name in brackets, which may contain blanks and brackets itself.
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // proc(5) numbers from 1, and the name is field 2: field n is at n - 3.
    let number = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    Some(ProcessStat {
        parent: u32::try_from(number(4)?).ok()?,
        own_ticks: number(14)? + number(15)?,
        children_ticks: number(16)? + number(17)?,
    })
}

fn parse_status(text: &str) -> ProcessMemory {
    let kib = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|rest| rest.split_whitespace().next()?.parse().ok())
            .unwrap_or(0)
    };
    ProcessMemory {
        resident: kib("VmRSS:"),
        peak: kib("VmHWM:"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "4242 (a (b) c) S 17 4242 4242 0 -1 4194560 900 20 0 0 \
        150 50 7 3 20 0 4 0 123456 10000000 800 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1";

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        assert_eq!(
            parse_stat(STAT),
            Some(ProcessStat {
                parent: 17,
                own_ticks: 200,
                children_ticks: 10
            })
        );
    }

    #[test]
    fn a_cut_stat_is_none() {
        assert_eq!(parse_stat("4242 (name) S 17 1 1 0 -1 0 0 0 0 0 150"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn memory_is_in_kib() {
        let text = "Name:\tx\nVmPeak:\t 999 kB\nVmHWM:\t    1536 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(
            parse_status(text),
            ProcessMemory {
                resident: 1024,
                peak: 1536
            }
        );
        assert_eq!(parse_status("Name:\tzombie\n"), ProcessMemory::default());
    }

    #[test]
    fn a_peak_begins_anew() {
        let own = std::process::id();
        let large = vec![1_u8; 64 << 20];
        assert!(memory_usage(own).unwrap().peak > 64 << 10);
        drop(large);
        forget_peak(own).unwrap();
        let memory = memory_usage(own).unwrap();
        assert!(memory.peak < memory.resident + (32 << 10), "{memory:?}");
    }

    #[test]
    fn children_count_with_their_parent() {
        let script =
            "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done & wait; echo done; sleep 60";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]);
        let mut process = adit_interop::ChildProcess::spawn(command).unwrap();
        process
            .wait_lines("done", 1, adit_interop::TEST_TIMEOUT)
            .unwrap();
        assert!(cpu_time(process.id()).unwrap() >= Duration::from_millis(10));
        // The shell and its `sleep`, which starts a moment after the word.
        let late = std::time::Instant::now() + adit_interop::TEST_TIMEOUT;
        while process_tree(process.id()).unwrap().len() < 2 && std::time::Instant::now() < late {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(process_tree(process.id()).unwrap().len(), 2);
        assert!(memory_usage(process.id()).unwrap().resident > 500);
    }
}
