use crate::abi;
use crate::buffer::whole;
use crate::error::{answer, Result};

/// The level of a line in weir's own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Trace = 0,
    Debug = 1,
    Info = 2,
    Warn = 3,
    Error = 4,
}

/// Writes a line to weir's own log, with the filter's name; [`log!`](crate::log!) formats one. Over 100 lines a second are
/// left out and counted.
pub fn write_log(level: Level, line: &str) {
    unsafe { abi::log(level as i32, line.as_ptr(), line.len()) }
}

/// Tells whether lines of this level are written at all.
pub fn log_enabled(level: Level) -> bool {
    unsafe { abi::log_enabled(level as i32) != 0 }
}

/// Formats a line for weir's own log, if lines of this level are written: `weir::log!(Warn, "no device {}", ip)`.
#[macro_export]
macro_rules! log {
    ($level:ident, $($format:tt)+) => {
        if $crate::log_enabled($crate::Level::$level) {
            $crate::write_log($crate::Level::$level, &::std::format!($($format)+))
        }
    };
}

/// Gives the reason for [`Verdict::Reject`](crate::Verdict::Reject) or [`Verdict::Failed`](crate::Verdict::Failed); the last
/// one counts, and at most 4 KiB of it. `Err` from a filter's function does both.
pub fn fail(reason: impl AsRef<[u8]>) {
    let r = reason.as_ref();
    unsafe { abi::fail(r.as_ptr(), r.len()) }
}

/// The filter's `config:` as JSON, `{}` when there is none. [`settings!`](crate::settings!) reads it into a struct; with
/// serde at hand, `serde_json::from_str(&weir::config_text())` does too.
pub fn config_text() -> String {
    let b = whole("config", |buf, cap| unsafe { abi::config_get(buf, cap) }).unwrap_or_default();
    String::from_utf8(b).unwrap_or_default() // the host hands over JSON only
}

/// One more message behind this one, from record JSON (filters/ABI.md); see [`Record`](crate::Record), which writes it.
///
/// What it leaves out is inherited from the message as it stands now; in `tick` and `close` nothing is, and a missing
/// timestamp is the time, a missing hostname weir's, a missing app_name the filter's name. It goes on at the next filter,
/// also when the message itself is dropped. When the call fails or rejects, it is gone.
/// [`Invalid`](crate::ErrorKind::Invalid): some part of it is wrong, and nothing was emitted.
/// [`TooMany`](crate::ErrorKind::TooMany): over 1000 in a call, or no memory is free.
pub fn emit(record: impl AsRef<[u8]>) -> Result<()> {
    let r = record.as_ref();
    answer(unsafe { abi::emit(r.as_ptr(), r.len()) }, "emit").map(drop)
}

/// The time in ns since 1970. `std::time` works with the target wasm32-wasi only.
pub fn now() -> i64 {
    unsafe { abi::time_now() }
}

/// 64 random bits.
pub fn random() -> u64 {
    unsafe { abi::random() as u64 }
}

/// The filter's own metrics, `weir_filter_user_<name>{filter="…"}`. A name is `[a-zA-Z_][a-zA-Z0-9_]*`; others, and values
/// that are NaN, are ignored and logged once. At most 1000 names a filter.
pub mod metric {
    use crate::abi;

    /// Adds to a metric, which starts at 0.
    pub fn add(name: &str, value: f64) {
        unsafe { abi::metric_add(name.as_ptr(), name.len(), value) }
    }

    /// Sets a metric.
    pub fn set(name: &str, value: f64) {
        unsafe { abi::metric_set(name.as_ptr(), name.len(), value) }
    }
}
