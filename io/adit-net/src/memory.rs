//! Memory that an allocator keeps.

/// Returns what has been freed to the system, as far as it lies in whole pages. Walks the whole
/// heap: for seldom, and not on a thread that others wait for.
///
/// Glibc keeps what lies between blocks in use, and each of its arenas has some of them: after a
/// flood of connections most of its memory stayed for ever.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "no safe wrapper has this function")]
pub fn give_back() {
    // SAFETY: it takes no pointer, and locks each arena while it looks at it.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators do it by themselves, or cannot be asked.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub const fn give_back() {}
