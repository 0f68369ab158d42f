//! Memory that the allocator retains.

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
