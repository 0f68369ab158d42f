//! Threads of the load that run soon after they wake.

use std::io;

/// Has the kernel run the calling thread soon after it wakes, also while others keep every processor
/// busy: it asks for short turns (`sched_setattr(2)`), and gets them sooner. Its share of the
/// processors stays the same, and what it forks or clones has ordinary turns again.
///
/// Linux 6.12 and newer do that; older kernels take the wish and ignore it. A thread of another
/// policy or a higher priority than usual is left as it is.
pub(crate) fn request_short_slices() -> io::Result<()> {
    let mut wish = system::get_attributes()?;
    if wish.policy != system::SCHED_OTHER || wish.nice < 0 {
        return Ok(());
    }
    wish.flags |= system::RESET_ON_FORK;
    wish.runtime = SLICE_NANOS;
    system::set_attributes(&wish)
}

/// Nanoseconds of a turn: the shortest that the kernel takes. Mostly it has 3 ms.
const SLICE_NANOS: u64 = 100_000;

mod system {
    use std::io;

    /// What a thread has unless somebody has asked for another policy.
    pub(super) const SCHED_OTHER: u32 = 0;
    /// `SCHED_FLAG_RESET_ON_FORK`.
    pub(super) const RESET_ON_FORK: u64 = 1;

    /// `struct sched_attr` as it was first (48 octets), which every kernel takes.
    #[repr(C)]
    #[derive(Debug, Default)]
    pub(super) struct SchedAttributes {
        pub(super) size: u32,
        pub(super) policy: u32,
        pub(super) flags: u64,
        pub(super) nice: i32,
        pub(super) priority: u32,
        pub(super) runtime: u64,
        pub(super) deadline: u64,
        pub(super) period: u64,
    }

    const SIZE: u32 = size_of::<SchedAttributes>() as u32;

    /// Those of the calling thread.
    #[allow(unsafe_code, reason = "no safe wrapper has this call")]
    pub(super) fn get_attributes() -> io::Result<SchedAttributes> {
        let mut found = SchedAttributes::default();
        // SAFETY: the kernel writes at most `SIZE` octets to `found`, which is that large, lives
        // beyond the call, and takes any bits.
        let done = unsafe {
            libc::syscall(
                libc::SYS_sched_getattr,
                0,
                &raw mut found,
                libc::c_ulong::from(SIZE),
                0,
            )
        };
        if done == 0 {
            found.size = SIZE;
            Ok(found)
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Changes those of the calling thread.
    #[allow(unsafe_code, reason = "no safe wrapper has this call")]
    pub(super) fn set_attributes(wish: &SchedAttributes) -> io::Result<()> {
        // SAFETY: the kernel reads `wish.size` octets of `wish`, which are all it has, and keeps
        // no pointer.
        let done = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *wish, 0) };
        if done == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn turns_are_short_for_this_thread_alone() {
            let turn = || get_attributes().unwrap();
            let before = turn();
            crate::short_turns::request_short_slices().unwrap();
            let after = turn();
            assert_eq!((after.nice, after.policy), (before.nice, before.policy));
            let forked = std::thread::spawn(move || get_attributes().unwrap())
                .join()
                .unwrap();
            assert_eq!(
                (forked.runtime, forked.flags),
                (before.runtime, before.flags)
            );
            // Older kernels have no turns to tell of.
            if before.runtime != 0 {
                assert_eq!(after.runtime, crate::short_turns::SLICE_NANOS);
            }
        }
    }
}
