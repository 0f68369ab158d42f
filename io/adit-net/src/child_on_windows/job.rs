//! Jobs: groups of processes that the system kills together. The calls have no safe wrapper.

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null;

use adit_wire::narrow_int;
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation,
    SetInformationJobObject, TerminateJobObject,
};

/// Exit code of processes that are killed, as with `Child::kill`.
const KILLED: u32 = 1;

/// A job whose processes are killed when this is dropped, or when this process ends.
#[derive(Debug)]
pub(super) struct Job(OwnedHandle);

impl Job {
    /// Creates an empty job.
    #[allow(unsafe_code, reason = "no safe wrapper has these functions")]
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: both pointers may be null: default security, no name.
        let handle = unsafe { CreateJobObjectW(null(), null()) };
        if handle.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the handle was just opened, and nothing else owns it.
        let job = Self(unsafe { OwnedHandle::from_raw_handle(handle) });
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        // SAFETY: the pointer and the length are those of a structure of the type that this class requires, which lives
        // longer than the call and is only read.
        let done = unsafe {
            SetInformationJobObject(
                job.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                narrow_int(size_of_val(&limits)),
            )
        };
        if done == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(job)
    }

    /// Puts a process into the job, with everything that it starts from now on.
    #[allow(unsafe_code, reason = "no safe wrapper has this function")]
    pub(super) fn add(&self, process: &impl AsHandle) -> io::Result<()> {
        let process = process.as_handle().as_raw_handle();
        // SAFETY: both handles are borrowed and stay open during the call.
        match unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process) } {
            0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Kills all processes of the job.
    #[allow(unsafe_code, reason = "no safe wrapper has this function")]
    pub(super) fn kill(&self) {
        // The only error is a job whose processes have just ended.
        // SAFETY: the handle is ours and stays open during the call.
        let _ = unsafe { TerminateJobObject(self.0.as_raw_handle(), KILLED) };
    }
}

/// Sends Ctrl-Break to a process group with the console of this process. Returns false if that is impossible.
#[allow(unsafe_code, reason = "no safe wrapper has this function")]
pub(super) fn send_ctrl_break(group: u32) -> bool {
    // Group 0 would be all processes of the console, including this one.
    if group == 0 {
        return false;
    }
    // SAFETY: it takes two numbers.
    unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, group) != 0 }
}
