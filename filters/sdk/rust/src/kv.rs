//! A store of keys and values that all instances of a filter share, and that lasts until weir ends.
//!
//! Instances come and go (a fault costs one, a new module replaces all); what must outlast them stands here: at most
//! 10 000 keys and 16 MiB a filter. It is not undone when a call fails.

use core::time::Duration;

use crate::abi;
use crate::buffer::{text, whole};
use crate::error::{answer, optional, Result};

/// The value of `key` as text; a number that [`add`] made is decimal. One that is not UTF-8 is
/// [`WrongType`](crate::ErrorKind::WrongType): see [`bytes`].
pub fn get(key: &str) -> Result<Option<String>> {
    match bytes(key)? {
        Some(b) => text(key, b).map(Some),
        None => Ok(None),
    }
}

/// The value of `key`.
pub fn bytes(key: &str) -> Result<Option<Vec<u8>>> {
    optional(whole(key, |buf, cap| unsafe { abi::kv_get(key.as_ptr(), key.len(), buf, cap) }))
}

/// Sets `key`, for as long as `ttl`, or without an end. Setting it again renews it. A `ttl` counts in ms, and is at least
/// one. [`TooMany`](crate::ErrorKind::TooMany): the filter's keys or bytes are used up.
pub fn set(key: &str, value: impl AsRef<[u8]>, ttl: Option<Duration>) -> Result<()> {
    let v = value.as_ref();
    let ms = ttl.map_or(0, |t| t.as_millis().clamp(1, i64::MAX as u128) as i64);
    answer(unsafe { abi::kv_set(key.as_ptr(), key.len(), v.as_ptr(), v.len(), ms) }, key).map(drop)
}

/// Removes `key`. False when it was not there.
pub fn delete(key: &str) -> Result<bool> {
    optional(answer(unsafe { abi::kv_del(key.as_ptr(), key.len()) }, key)).map(|found| found.is_some())
}

/// Adds to the number at `key`, at once for all instances, and returns the sum. What is absent starts at 0; the time that
/// `key` has left stays as it is; beyond 64 bits it wraps. [`WrongType`](crate::ErrorKind::WrongType): the value is no number.
pub fn add(key: &str, delta: i64) -> Result<i64> {
    let mut sum = 0;
    answer(unsafe { abi::kv_add(key.as_ptr(), key.len(), delta, &mut sum) }, key).map(|_| sum)
}
