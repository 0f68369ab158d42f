//! A TUN device: the packets of a network namespace as reads and writes of a file. The only module
//! with `unsafe`: the device's name and flags are set with `ioctl`.

#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

/// IP packets without a device header (`IFF_TUN | IFF_NO_PI` of `linux/if_tun.h`).
const FLAGS: u16 = 0x0001 | 0x1000;
/// A header that says which work is left to the network card (`IFF_VNET_HDR`).
const VNET_HEADER: u16 = 0x4000;
/// Work left to the network card: checksums, and segmentation of TCP over IPv4 (`TUN_F_CSUM |
/// TUN_F_TSO4`).
const OFFLOADS: nix::libc::c_int = 1 | 2;

/// `struct ifreq` of `linux/if.h`, of which this call reads the name and the flags: at most 40
/// bytes.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

nix::ioctl_write_ptr_bad!(
    set_interface,
    nix::request_code_write!(b'T', 202, size_of::<nix::libc::c_int>()),
    InterfaceRequest
);

nix::ioctl_write_int_bad!(
    set_offload,
    nix::request_code_write!(b'T', 208, size_of::<nix::libc::c_uint>())
);

/// Creates a device with this name, of at most 15 bytes, in the namespace of the calling thread. It
/// is removed when the file is closed. Reads do not block. With `offload`, each packet has a header
/// of [`crate::offload`], and groups of segments are not segmented.
pub(crate) fn open_tun(name: &str, offload: bool) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open("/dev/net/tun")?;
    let mut request = InterfaceRequest {
        name: [0; 16],
        flags: if offload { FLAGS | VNET_HEADER } else { FLAGS },
        rest: [0; 22],
    };
    let slots = request.name.iter_mut().take(15);
    slots
        .zip(name.bytes())
        .for_each(|(slot, byte)| *slot = byte);
    // SAFETY: the descriptor is open, and the request is as long as the kernel copies and lives
    // until the call returns.
    unsafe { set_interface(file.as_raw_fd(), &raw const request) }?;
    if offload {
        // SAFETY: the descriptor is open, and the argument is a number.
        unsafe { set_offload(file.as_raw_fd(), OFFLOADS) }?;
    }
    Ok(file)
}
