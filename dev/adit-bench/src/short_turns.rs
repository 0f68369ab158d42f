//! Threads of the load that run soon after they wake.

use std::io;

/// Makes the kernel run the calling thread soon after it wakes, even while other threads keep every
/// processor busy: it requests short time slices (`sched_setattr(2)`), and gets them sooner. Its
/// share of the processors stays the same, and threads and processes that it starts have ordinary
/// time slices again.
///
/// Linux 6.12 and newer support this; older kernels accept the request and ignore it. A thread with
/// another policy or a higher priority than usual is left unchanged.
pub(crate) fn request_short_slices() -> io::Result<()> {
    let mut wish = system::get_attributes()?;
    if wish.policy != system::SCHED_OTHER || wish.nice < 0 {
        return Ok(());
    }
    wish.flags |= system::RESET_ON_FORK;
    wish.runtime = SLICE_NANOS;
    system::set_attributes(&wish)
}

/// Length of a time slice in nanoseconds: the shortest that the kernel accepts. The default is
/// usually 3 ms.
const SLICE_NANOS: u64 = 100_000;

mod system {
    use std::io;

    /// Policy of a thread, unless another one was requested.
    pub(super) const SCHED_OTHER: u32 = 0;
    /// `SCHED_FLAG_RESET_ON_FORK`.
    pub(super) const RESET_ON_FORK: u64 = 1;

    /// The first version of `struct sched_attr` (48 bytes), which every kernel accepts.
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

    /// Returns the attributes of the calling thread.
    #[allow(unsafe_code, reason = "no safe wrapper has this call")]
    pub(super) fn get_attributes() -> io::Result<SchedAttributes> {
        let mut found = SchedAttributes::default();
        // SAFETY: the kernel writes at most `SIZE` bytes to `found`, which is that large, outlives
        // the call, and has no invalid bit patterns.
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

    /// Changes the attributes of the calling thread.
    #[allow(unsafe_code, reason = "no safe wrapper has this call")]
    pub(super) fn set_attributes(wish: &SchedAttributes) -> io::Result<()> {
        // SAFETY: the kernel reads `wish.size` bytes of `wish`, which is its whole length, and
        // keeps no pointer.
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
            // Older kernels do not report time slices.
            if before.runtime != 0 {
                assert_eq!(after.runtime, crate::short_turns::SLICE_NANOS);
            }
        }
    }
}
