//! Memory that a process holds without a use for it: what the allocator retains, and code that only the start needs.

/// Returns freed memory to the system, as far as it consists of whole pages. This walks the whole heap:
/// call it rarely, and not on a thread that others wait for.
///
/// Glibc retains what lies between blocks in use, and each of its arenas has some of it: after a flood of
/// connections most of its memory stayed permanently.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "no safe wrapper has this function")]
pub fn release_free_pages() {
    // SAFETY: it takes no pointer, and locks each arena while it looks at it.
    unsafe { libc::malloc_trim(0) };
}

/// Does nothing: other allocators return memory themselves or have no such function.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn release_free_pages() {}

/// Size in bytes from which on a block is a mapping of its own, and free memory at the end of an arena is returned.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAX_FREE: libc::c_int = 1 << 20;

/// Limits the free memory that the allocator retains at the end of each of its arenas. Call it once, at the start.
///
/// Glibc raises this limit to twice the size of the largest block that was ever freed, at most 64 MiB, and
/// [`release_free_pages`] does not look at the ends of the arenas of threads: after 100,000 users were loaded, half of the
/// processes kept 18 MB there, for which they had no use.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "no safe wrapper has this function")]
pub fn limit_free_memory() {
    for limit in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: it takes no pointer, and locks the allocator while it sets a number. Without an effect, memory is used
        // as before.
        unsafe { libc::mallopt(limit, MAX_FREE) };
    }
}

/// Does nothing: other allocators have other limits.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn limit_free_memory() {}

/// Removes all code from the memory of this process, and the constants and relocations beside it. What is used again is
/// mapped again, from the page cache: one short page fault for each 64 KiB. Call it once, when the process has started.
///
/// The kernel maps the surroundings of each page that is executed, so that most of the code is part of the process after
/// the start, although a process at rest needs little of it. Executable pages that are mapped are also the last that the
/// kernel reclaims (`VM_EXEC`), and code that only the start needs should not be among them. The relocations, 1.3 MB of
/// them, are read once, before the first line of the program.
///
/// # Errors
///
/// Returns the error of reading `/proc/self/maps`, or of the system call, which fails if memory is locked
/// (`mlockall`).
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "the advice that unmaps pages has no safe wrapper"
)]
pub fn release_code_pages() -> std::io::Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for (start, len) in code_mappings(&maps) {
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is one mapping of a file that is private and not writable: code, or the part of a program or
        // library before it. Nothing has changed its pages, since those with position-independent code have no
        // relocations in either, so the pages that are mapped again have the same bytes. No library is unloaded, so the
        // range is still that mapping.
        let done = unsafe { libc::madvise(start, len, libc::MADV_DONTNEED) };
        if done != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Does nothing: the system has no such function.
///
/// # Errors
///
/// None.
#[cfg(not(target_os = "linux"))]
pub const fn release_code_pages() -> std::io::Result<()> {
    Ok(())
}

/// Returns the address and the length in bytes of each mapping of a file with code, and of what is before the code in the
/// same file, from the text of `/proc/PID/maps`.
///
/// Other mappings that are not writable may have been: data with relocations (`PT_GNU_RELRO`) is behind the code.
#[cfg(target_os = "linux")]
fn code_mappings(maps: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut before: Option<FileMapping<'_>> = None;
    for line in maps.lines() {
        let mapping = FileMapping::parse(line);
        if let Some(code) = &mapping
            && code.access == "r-xp"
        {
            let is_start = |own: &FileMapping<'_>| {
                (own.access, own.offset) == ("r--p", 0) && own.inode == code.inode
            };
            found.extend(before.filter(is_start).map(|own| own.range));
            found.push(code.range);
        }
        before = mapping;
    }
    found
}

/// A mapping of a file.
#[cfg(target_os = "linux")]
struct FileMapping<'a> {
    /// Address and length.
    range: (usize, usize),
    access: &'a str,
    offset: u64,
    inode: &'a str,
}

#[cfg(target_os = "linux")]
impl<'a> FileMapping<'a> {
    /// Parses a line of `/proc/PID/maps`. Returns `None` without a file: there is nothing to read its pages from again.
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (range, access) = (fields.next()?, fields.next()?);
        let (offset, inode) = (fields.next()?, fields.nth(1)?);
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let own = Self {
            range: (start, end.checked_sub(start)?),
            access,
            offset: u64::from_str_radix(offset, 16).ok()?,
            inode,
        };
        (inode != "0").then_some(own)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_found() {
        let maps = "\
55fa0d026000-55fa0d447000 r--p 00000000 fe:00 123 /usr/bin/adit
55fa0d447000-55fa0e06f000 r-xp 00421000 fe:00 123 /usr/bin/adit
55fa0e06f000-55fa0e0d7000 r--p 01049000 fe:00 123 /usr/bin/adit
55fa0e0d7000-55fa0e0da000 rw-p 010b1000 fe:00 123 /usr/bin/adit
7f667a400000-7f667a42e000 r--p 00000000 fe:00 78 /usr/share/locale.bin
7f667a42e000-7f667a584000 r-xp 00026000 fe:00 77 /usr/lib/x86_64-linux-gnu/libc.so.6 (deleted)
7f667a600000-7f667a601000 r-xp 00000000 00:00 0
7f667a601000-7f667a602000 rwxp 00000000 fe:00 9 /usr/lib/patched.so
7f667a602000-7f667a603000 r--p 00001000 fe:00 10 /usr/lib/other.so
7f667a603000-7f667a604000 r-xp 00002000 fe:00 10 /usr/lib/other.so
7f667a6fb000-7f667a6fd000 r-xp 00000000 00:00 0 [vdso]
7f667a6fd000 r-xp
";
        let expected = [
            (0x55fa_0d02_6000, 0x42_1000),
            (0x55fa_0d44_7000, 0xc2_8000),
            (0x7f66_7a42_e000, 0x15_6000),
            (0x7f66_7a60_3000, 0x1000),
        ];
        assert_eq!(code_mappings(maps), expected);
    }

    #[test]
    fn released_code_runs_again() {
        /// Returns the number of KiB of code in memory.
        fn resident_code(smaps: &str) -> u64 {
            let mut is_code = false;
            let mut resident = 0;
            for line in smaps.lines() {
                match line.split_once(':') {
                    Some(("Rss", size)) if is_code => {
                        resident += size.trim().trim_end_matches(" kB").parse::<u64>().unwrap();
                    }
                    Some((key, _)) if key.contains('-') => is_code = line.contains(" r-xp "),
                    _ => {}
                }
            }
            resident
        }
        let smaps = || std::fs::read_to_string("/proc/self/smaps").unwrap();
        let before = resident_code(&smaps());
        release_code_pages().unwrap();
        let after = resident_code(&smaps());
        assert!(before > 0 && after < before, "{before} {after}");
    }
}
