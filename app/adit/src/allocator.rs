//! The allocator of static binaries.
//!
//! That of musl has one lock for all threads, and asks the system for memory often. On processors with 32-bit
//! addresses, which are those of small routers, it is the better one: it holds less memory.

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
