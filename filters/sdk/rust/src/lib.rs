//! Write filters for the log router weir in Rust. No dependencies, Rust 1.63 or later.
//!
//! A filter is a function of a message:
//!
//! ```no_run
//! use weir::{Failure, Message, Verdict};
//!
//! fn process(m: &mut Message) -> Result<Verdict, Failure> {
//!     if m.is("app_name", "healthd") {
//!         return Ok(Verdict::Drop);
//!     }
//!     if let Some(text) = m.get_lossy("message")? {
//!         if text.starts_with("audit:") {
//!             m.set("kind", "audit")?;
//!         }
//!     }
//!     Ok(Verdict::Keep)
//! }
//!
//! weir::filter!(process);
//! ```
//!
//! or, with settings and state, a type:
//!
//! ```no_run
//! use weir::{Failure, Filter, Message, Verdict};
//!
//! weir::settings! {
//!     struct Settings { limit: i64 = 100 }
//! }
//!
//! struct Limit { settings: Settings, seen: i64 }
//!
//! impl Filter for Limit {
//!     fn start() -> Result<Limit, Failure> {
//!         Ok(Limit { settings: Settings::read()?, seen: 0 })
//!     }
//!
//!     fn process(&mut self, _: &mut Message) -> Result<Verdict, Failure> {
//!         self.seen += 1;
//!         Ok(if self.seen > self.settings.limit { Verdict::Drop } else { Verdict::Keep })
//!     }
//!
//!     fn tick(&mut self) {
//!         self.seen = 0;
//!     }
//! }
//!
//! weir::filter!(type Limit);
//! ```
//!
//! It is built as a library that weir calls, `crate-type = ["cdylib"]`, for wasm32-unknown-unknown or wasm32-wasi, without
//! symbols; docs/filters/rust.md has the commands.
//!
//! An instance serves one message at a time. weir runs one a core unless the configuration says `instances: one`, and
//! replaces one that panicked, so what a type holds is a cache and no truth; [`kv`] is for what must be shared or last.
//!
//! The contract behind this crate is filters/ABI.md.

#![warn(rust_2018_idioms)]

mod abi;
mod buffer;
mod error;
mod filter;
mod host;
mod json;
pub mod kv;
mod message;
mod record;
mod settings;

pub use error::{Error, ErrorKind, Failure, Result};
pub use filter::{Filter, Outcome, Verdict};
pub use host::{config_text, emit, fail, log_enabled, metric, now, random, write_log, Level};
pub use json::Json;
pub use message::{Message, Type, Value};
pub use record::{quote, Record};
pub use settings::Setting;

#[doc(hidden)]
pub use filter::{process_with, tell_panics, Running};
#[doc(hidden)]
pub use settings::{only_these, setting};
