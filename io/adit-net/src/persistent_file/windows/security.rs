//! Owners and access lists of files, as text (SDDL). The calls have no safe wrapper.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::Path;
use std::ptr::null_mut;

use adit_wire::{narrow_int, usize_from};
use windows_sys::Win32::Foundation::{
    ERROR_INSUFFICIENT_BUFFER, ERROR_SUCCESS, GENERIC_READ, GENERIC_WRITE, INVALID_HANDLE_VALUE,
    LocalFree,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertSecurityDescriptorToStringSecurityDescriptorW, ConvertSidToStringSidW,
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1,
    SE_FILE_OBJECT,
};
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, GetTokenInformation, OWNER_SECURITY_INFORMATION,
    SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_ATTRIBUTE_NORMAL, FILE_SHARE_DELETE,
    FILE_SHARE_READ,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

const OWNER_AND_DACL: u32 = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;

/// Memory that the system has allocated for a result.
#[derive(Debug)]
struct LocalMemory(*mut c_void);

impl Drop for LocalMemory {
    #[allow(unsafe_code, reason = "no safe wrapper has this function")]
    fn drop(&mut self) {
        // SAFETY: the pointer is null or was allocated by a function that leaves this call to its caller, and is freed
        // once.
        unsafe { LocalFree(self.0) };
    }
}

// SAFETY: the memory belongs to this alone, may be freed by any thread, and is never written to.
#[allow(unsafe_code, reason = "a pointer is not `Send` by itself")]
unsafe impl Send for LocalMemory {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "a pointer is not `Sync` by itself")]
unsafe impl Sync for LocalMemory {}

/// The access list of a new file, folder or pipe.
#[derive(Debug)]
pub(crate) struct PrivateSecurity(LocalMemory);

impl PrivateSecurity {
    #[allow(unsafe_code, reason = "no safe wrapper has this function")]
    pub(super) fn from_sddl(sddl: &str) -> io::Result<Self> {
        let sddl = wide(sddl.encode_utf16())?;
        let mut descriptor = null_mut();
        // SAFETY: the text ends with NUL; the result is written to a pointer that lives longer than the call; its length
        // is not wanted.
        let done = unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                sddl.as_ptr(),
                SDDL_REVISION_1,
                &raw mut descriptor,
                null_mut(),
            )
        };
        let memory = LocalMemory(descriptor);
        if done == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(memory))
    }

    /// Returns the attributes, which are valid as long as this lives.
    pub(crate) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: narrow_int(size_of::<SECURITY_ATTRIBUTES>()),
            lpSecurityDescriptor: self.0.0,
            bInheritHandle: 0,
        }
    }
}

/// Returns text with the NUL that ends it.
fn wide(text: impl Iterator<Item = u16>) -> io::Result<Vec<u16>> {
    let mut text: Vec<u16> = text.collect();
    if text.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    text.push(0);
    Ok(text)
}

/// Creates a file for writing that does not exist yet, with an access list.
#[allow(
    unsafe_code,
    reason = "the standard library creates files with inherited access lists only"
)]
pub(super) fn create_file(path: &Path, security: &PrivateSecurity) -> io::Result<File> {
    let attributes = security.attributes();
    let path = wide(path.as_os_str().encode_wide())?;
    // SAFETY: the path ends with NUL, and the attributes and what they point to live longer than the call.
    let handle = unsafe {
        CreateFileW(
            path.as_ptr(),
            GENERIC_READ | GENERIC_WRITE,
            FILE_SHARE_READ | FILE_SHARE_DELETE,
            &raw const attributes,
            CREATE_NEW,
            FILE_ATTRIBUTE_NORMAL,
            null_mut(),
        )
    };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just opened, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) }.into())
}

/// Creates a folder, with an access list that its files inherit.
#[allow(
    unsafe_code,
    reason = "the standard library creates folders with inherited access lists only"
)]
pub(super) fn create_folder(path: &Path, security: &PrivateSecurity) -> io::Result<()> {
    let attributes = security.attributes();
    let path = wide(path.as_os_str().encode_wide())?;
    // SAFETY: as in `create_file`.
    match unsafe { CreateDirectoryW(path.as_ptr(), &raw const attributes) } {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Returns the owner and the access list of an open file.
#[allow(unsafe_code, reason = "no safe wrapper has these functions")]
pub(super) fn file_sddl(file: &File) -> io::Result<String> {
    let mut descriptor = null_mut();
    // SAFETY: the file is open during the call; the result is written to a pointer that lives longer than the call; its
    // parts are not wanted.
    let code = unsafe {
        GetSecurityInfo(
            file.as_raw_handle(),
            SE_FILE_OBJECT,
            OWNER_AND_DACL,
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            &raw mut descriptor,
        )
    };
    let descriptor = LocalMemory(descriptor);
    if code != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(code.cast_signed()));
    }
    let mut text = null_mut();
    // SAFETY: the descriptor lives longer than the call, and the result is written to a pointer that does too.
    let done = unsafe {
        ConvertSecurityDescriptorToStringSecurityDescriptorW(
            descriptor.0,
            SDDL_REVISION_1,
            OWNER_AND_DACL,
            &raw mut text,
            null_mut(),
        )
    };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written a text that ends with NUL.
    Ok(unsafe { take_text(text) })
}

/// Returns the SID of the user of this process.
#[allow(unsafe_code, reason = "no safe wrapper has these functions")]
pub(super) fn current_user() -> io::Result<String> {
    let mut token = null_mut();
    // SAFETY: the handle of the process needs not be closed; the result is written to a pointer that lives longer than
    // the call.
    if unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was just opened, and nothing else owns it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    let mut len = 0;
    // SAFETY: without a buffer, only the required length is written.
    let done = unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            TokenUser,
            null_mut(),
            0,
            &raw mut len,
        )
    };
    let why = io::Error::last_os_error();
    if done == 0 && why.raw_os_error() != Some(ERROR_INSUFFICIENT_BUFFER.cast_signed()) {
        return Err(why);
    }
    // Aligned for the structure, which has pointers.
    let words = usize_from(len)
        .max(size_of::<TOKEN_USER>())
        .div_ceil(size_of::<u64>());
    let mut buffer = vec![0u64; words];
    // SAFETY: the buffer has at least `len` bytes.
    let done = unsafe {
        GetTokenInformation(
            token.as_raw_handle(),
            TokenUser,
            buffer.as_mut_ptr().cast(),
            len,
            &raw mut len,
        )
    };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the buffer has the alignment and at least the length of the structure, which the call has written.
    let user = unsafe { buffer.as_ptr().cast::<TOKEN_USER>().read() };
    let mut text = null_mut();
    // SAFETY: the SID is in the buffer, which lives longer than the call; the result is written to a pointer that does
    // too.
    if unsafe { ConvertSidToStringSidW(user.User.Sid, &raw mut text) } == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written a text that ends with NUL.
    Ok(unsafe { take_text(text) })
}

/// Copies a result, and frees it.
///
/// # Safety
/// `text` points to characters with a NUL at their end, which the system has allocated and nothing else frees.
#[allow(unsafe_code, reason = "the text is read from a pointer")]
unsafe fn take_text(text: *mut u16) -> String {
    let memory = LocalMemory(text.cast());
    let mut units = Vec::new();
    let mut at = text;
    loop {
        // SAFETY: `at` has not passed the NUL.
        let unit = unsafe { at.read() };
        if unit == 0 {
            break;
        }
        units.push(unit);
        // SAFETY: the NUL lies behind.
        at = unsafe { at.add(1) };
    }
    drop(memory);
    String::from_utf16_lossy(&units)
}
