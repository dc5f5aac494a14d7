//! rate-limit lets so many messages of a sender through in a time, and drops the rest:
//!
//!     config: {limit: 1000, per: 60, by: hostname}
//!
//! The counts are in weir's key-value store, which all instances share: the limit holds for all cores together.
//! README.md beside this folder has the settings.

use std::time::Duration;

use weir::{kv, metric, ErrorKind, Failure, Filter, Message, Record, Verdict};

weir::settings! {
    struct Settings {
        by: String = "hostname".to_string(),
        limit: i64 = 1000,
        per: i64 = 60,          // seconds
        always: i64 = 2,        // this severity and more severe ones pass, uncounted
        tell: bool = true,      // one message when a limit is reached
    }
}

struct Limit {
    settings: Settings,
}

weir::filter!(type Limit);

/// What a sender's value takes of the store at most.
const MOST_KEY: usize = 200;

impl Filter for Limit {
    fn start() -> Result<Limit, Failure> {
        let settings = Settings::read()?;
        if settings.limit < 0 {
            return Err("config: limit must be 0 or more".into());
        }
        if !(1..=86400).contains(&settings.per) {
            return Err("config: per must be 1 to 86400 seconds".into());
        }
        if settings.by.is_empty() {
            return Err("config: by must name a key".into());
        }
        Ok(Limit { settings })
    }

    fn process(&mut self, m: &mut Message) -> Result<Verdict, Failure> {
        let s = &self.settings;
        if m.int("severity")?.map_or(false, |severity| severity <= s.always) {
            return Ok(Verdict::Keep);
        }
        let sender = name(m.bytes(&s.by)?);
        let n = match self.count(&sender) {
            Ok(n) => n,
            // The store is full: rather too much than nothing. The metric tells.
            Err(e) if e.kind() == ErrorKind::TooMany => {
                metric::add("uncounted", 1.0);
                return Ok(Verdict::Keep);
            }
            Err(e) => return Err(e.into()),
        };
        if n <= s.limit {
            return Ok(Verdict::Keep);
        }
        metric::add("limited", 1.0);
        if n == s.limit + 1 && s.tell {
            let text = format!("rate limit: more than {} messages in {} s from {} {}; the rest is dropped", s.limit, s.per, s.by, sender);
            Record::new().text("message", text).int("severity", 4).text("app_name", "rate-limit").json("proc_id", "null").json("msg_id", "null").emit()?;
        }
        Ok(Verdict::Drop)
    }
}

impl Limit {
    /// Counts a message and returns how many there were since the sender's first one, at most `per` ago.
    fn count(&self, sender: &str) -> weir::Result<i64> {
        let window = Some(Duration::from_secs(self.settings.per as u64));
        let mut n = 1;
        if kv::bytes(sender)?.is_some() {
            n = kv::add(sender, 1)?;
        }
        if n == 1 {
            kv::set(sender, "1", window)?; // a sum keeps the time it has; this begins one
        }
        Ok(n)
    }
}

/// The value as a key: UTF-8 without NUL, of bounded length. What is cut keeps apart by a sum of all of it.
fn name(value: Option<Vec<u8>>) -> String {
    let value = value.unwrap_or_default();
    let text = String::from_utf8_lossy(&value).replace('\0', " ");
    if text.is_empty() {
        return "-".to_string();
    }
    if text.len() <= MOST_KEY {
        return text;
    }
    let sum = value.iter().fold(0xcbf29ce484222325u64, |h, &c| (h ^ c as u64).wrapping_mul(0x100000001b3));
    let mut end = MOST_KEY;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}…{:016x}", &text[..end], sum)
}
