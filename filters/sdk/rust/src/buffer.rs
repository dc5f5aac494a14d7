use core::cell::UnsafeCell;

use crate::error::{answer, Error, ErrorKind, Result};

/// Where values are read first: one host call for a get, and one allocation, of the right size.
const SCRATCH: usize = 64 << 10;

struct Scratch(UnsafeCell<[u8; SCRATCH]>);

// SAFETY: a guest is one thread, and nothing that get calls comes back here.
unsafe impl Sync for Scratch {}

static BUFFER: Scratch = Scratch(UnsafeCell::new([0; SCRATCH]));

/// Reads a whole value, of any length. get is the host's function, told where to write to, and how much.
pub(crate) fn whole(name: &str, get: impl Fn(*mut u8, usize) -> i32) -> Result<Vec<u8>> {
    let scratch = BUFFER.0.get() as *mut u8;
    let n = answer(get(scratch, SCRATCH), name)?;
    if n <= SCRATCH {
        // SAFETY: the host wrote n bytes, and nobody writes there before they are copied.
        return Ok(unsafe { core::slice::from_raw_parts(scratch, n) }.to_vec());
    }
    let mut long = Vec::new();
    into(&mut long, n, name, get)?;
    Ok(long)
}

/// Reads a whole value over what is in `to`, which grows when it must; at first at least `least` bytes are asked for.
pub(crate) fn into(to: &mut Vec<u8>, least: usize, name: &str, get: impl Fn(*mut u8, usize) -> i32) -> Result<()> {
    to.clear();
    to.reserve(least);
    loop {
        let room = to.capacity();
        let n = answer(get(to.as_mut_ptr(), room), name)?;
        if n <= room {
            // SAFETY: the host wrote n bytes.
            unsafe { to.set_len(n) };
            return Ok(());
        }
        to.reserve(n);
    }
}

pub(crate) fn text(name: &str, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::WrongType, name))
}
