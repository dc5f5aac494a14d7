//! dedupe passes a message once in a while and counts its repetitions:
//!
//!     link down, link down, link down   ->   link down, and after the window: last message repeated 2 times: link down
//!
//! It keeps state in its own memory and is meant for `instances: one`. README.md beside this folder has the settings.

use std::collections::BTreeMap;

use weir::{metric, Failure, Filter, Message, Record, Verdict};

weir::settings! {
    struct Settings {
        by: Vec<String> = ["hostname", "app_name", "severity", "message"].map(String::from).to_vec(),
        window: i64 = 30,       // seconds from the first one
        most: usize = 10_000,   // different messages that are watched at a time
    }
}

/// What the watched messages take together, in bytes: within the 16 MiB that a filter has by default.
const MOST_BYTES: usize = 6 << 20;

struct Dedupe {
    settings: Settings,
    seen: BTreeMap<Vec<u8>, Seen>, // by the values of the keys
    due: Vec<Seen>,                // to be told by the next tick: there nothing is inherited from another message
    bytes: usize,
    ticks: i64, // about seconds
}

struct Seen {
    since: i64, // ticks
    repeated: i64,
    head: Vec<u8>, // the message without its text, as record JSON
    text: Vec<u8>,
}

weir::filter!(type Dedupe);

impl Filter for Dedupe {
    fn start() -> Result<Dedupe, Failure> {
        let settings = Settings::read()?;
        if !(1..=86400).contains(&settings.window) {
            return Err("config: window must be 1 to 86400 seconds".into());
        }
        if settings.by.is_empty() || settings.by.len() > 16 {
            return Err("config: by must be a list of 1 to 16 keys".into());
        }
        Ok(Dedupe { settings, seen: BTreeMap::new(), due: Vec::new(), bytes: 0, ticks: 0 })
    }

    fn process(&mut self, m: &mut Message) -> Result<Verdict, Failure> {
        let id = self.identity(m)?;
        if let Some(seen) = self.seen.get_mut(&id) {
            seen.repeated += 1;
            return Ok(Verdict::Drop);
        }
        self.watch(m, id)?;
        Ok(Verdict::Keep)
    }

    fn tick(&mut self) {
        self.ticks += 1;
        let over = self.ticks - self.settings.window;
        self.flush(|seen| seen.since <= over);
    }

    fn close(&mut self) {
        self.flush(|_| true);
    }
}

impl Dedupe {
    /// The values of all keys, each with its length, so that "ab" "c" is not "a" "bc".
    fn identity(&self, m: &Message) -> weir::Result<Vec<u8>> {
        let mut id = Vec::new();
        for key in &self.settings.by {
            match m.bytes(key)? {
                Some(value) => {
                    id.extend_from_slice(&(value.len() as u32).to_le_bytes());
                    id.extend_from_slice(&value);
                }
                None => id.extend_from_slice(&[0xff; 4]),
            }
        }
        Ok(id)
    }

    fn watch(&mut self, m: &Message, id: Vec<u8>) -> weir::Result<()> {
        let seen = Seen { since: self.ticks, repeated: 0, head: head(m)?, text: m.bytes("message")?.unwrap_or_default() };
        let size = id.len() + seen.size();
        if self.seen.len() + self.due.len() >= self.settings.most || self.bytes + size > MOST_BYTES {
            metric::add("unwatched", 1.0); // it passes, and so will its repetitions
            return Ok(());
        }
        self.bytes += size;
        self.seen.insert(id, seen);
        Ok(())
    }

    /// Ends the watch of a message; there may be something to tell.
    fn take(&mut self, id: &[u8]) {
        if let Some(seen) = self.seen.remove(id) {
            self.bytes -= id.len();
            if seen.repeated == 0 {
                self.bytes -= seen.size();
            } else {
                self.due.push(seen);
            }
        }
    }

    /// Tells of all whose window is over, in the order in which they came. What cannot be emitted now stays until the next tick.
    fn flush(&mut self, over: impl Fn(&Seen) -> bool) {
        let ids: Vec<Vec<u8>> = self.seen.iter().filter(|(_, seen)| over(seen)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.take(&id);
        }
        self.due.sort_by_key(|seen| seen.since);
        let mut told = 0;
        for seen in &self.due {
            if let Err(e) = seen.tell() {
                weir::log!(Warn, "dedupe: a summary has to wait: {}", e);
                break;
            }
            self.bytes -= seen.size();
            told += 1;
        }
        self.due.drain(..told);
    }
}

impl Seen {
    fn size(&self) -> usize {
        self.head.len() + self.text.len() + 128
    }

    /// Emits the summary.
    fn tell(&self) -> weir::Result<()> {
        let times = if self.repeated == 1 { "time" } else { "times" };
        let mut text = format!("last message repeated {} {}: ", self.repeated, times).into_bytes();
        text.extend_from_slice(&self.text);
        let rest = Record::new().text("message", text).int("repeated", self.repeated).finish();
        let mut record = self.head.clone();
        record.extend_from_slice(&rest[1..]); // behind the comma, without its own bracket
        weir::emit(record)
    }
}

/// What a summary says about itself: where the message came from and how bad it was. It ends in a comma.
fn head(m: &Message) -> weir::Result<Vec<u8>> {
    let mut r = Record::new();
    for key in ["facility", "severity"] {
        if let Some(n) = m.int(key)? {
            r = r.int(key, n);
        }
    }
    for key in ["hostname", "app_name", "proc_id", "msg_id"] {
        r = match m.bytes(key)? {
            Some(v) => r.text(key, v),
            None => r.json(key, "null"),
        };
    }
    let mut json = r.finish();
    json.pop();
    json.push(b',');
    Ok(json)
}
