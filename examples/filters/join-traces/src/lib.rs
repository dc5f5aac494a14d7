//! join-traces makes one message of a stack trace that its sender wrote line by line:
//!
//!     java.lang.IllegalStateException: no lock | <tab>at a.B.c(B.java:7) | Caused by: …   ->   one message with three lines
//!
//! It keeps the lines of an unfinished trace in its own memory and is meant for `instances: one`. README.md beside this
//! folder has the settings.

mod trace;

use std::collections::BTreeMap;

use weir::{metric, Failure, Filter, Message, Record, Verdict};

use trace::Trace;

weir::settings! {
    struct Settings {
        by: Vec<String> = ["hostname", "app_name", "proc_id"].map(String::from).to_vec(),
        start: Vec<String> = Vec::new(), // further texts that begin a trace
        wait: i64 = 2,                   // seconds for the next line
        lines: usize = 500,
        bytes: usize = 65536,            // of a trace
    }
}

/// What the traces in hand take together, in bytes, and how many there may be. A call emits 1000 at most.
const MOST_BYTES: usize = 4 << 20;
const MOST_TRACES: usize = 1000;

struct Join {
    settings: Settings,
    held: BTreeMap<Vec<u8>, Held>, // unfinished, by the values of the keys
    done: Vec<Held>,               // to be emitted by the next tick: there nothing is inherited from another message
    bytes: usize,
    ticks: i64, // about seconds
}

struct Held {
    last: i64,      // when the last line came, in ticks
    record: String, // the first line's message, without its text
    trace: Trace,
}

weir::filter!(type Join);

impl Filter for Join {
    fn start() -> Result<Join, Failure> {
        let settings = Settings::read()?;
        if settings.by.is_empty() || settings.by.len() > 16 {
            return Err("config: by must be a list of 1 to 16 keys".into());
        }
        if !(1..=60).contains(&settings.wait) {
            return Err("config: wait must be 1 to 60 seconds".into());
        }
        if settings.lines < 2 || settings.bytes < 100 || settings.bytes > 1 << 20 {
            return Err("config: lines must be 2 or more, bytes 100 to 1048576".into());
        }
        if settings.start.iter().any(String::is_empty) {
            return Err("config: start may not have an empty text".into());
        }
        Ok(Join { settings, held: BTreeMap::new(), done: Vec::new(), bytes: 0, ticks: 0 })
    }

    fn process(&mut self, m: &mut Message) -> Result<Verdict, Failure> {
        let text = m.bytes("message")?.unwrap_or_default();
        let id = self.identity(m)?;
        if let Some(held) = self.held.get_mut(&id) {
            let fits = held.trace.lines < self.settings.lines && held.trace.text.len() + text.len() < self.settings.bytes;
            if fits && self.bytes + text.len() < MOST_BYTES && held.trace.take(&text) {
                held.last = self.ticks;
                self.bytes += text.len() + 1;
                return Ok(Verdict::Drop); // it comes back as a part of the trace
            }
            self.done.extend(self.held.remove(&id));
        }
        let trace = match Trace::starting(text, &self.settings.start) {
            Some(trace) => trace,
            None => return Ok(Verdict::Keep),
        };
        m.unset("message")?;
        let held = Held { last: self.ticks, record: m.record()?, trace };
        if self.held.len() + self.done.len() >= MOST_TRACES || self.bytes + held.size() > MOST_BYTES {
            metric::add("unjoined", 1.0);
            m.set("message", held.trace.text)?;
            return Ok(Verdict::Keep);
        }
        self.bytes += held.size();
        self.held.insert(id, held);
        Ok(Verdict::Drop)
    }

    fn tick(&mut self) {
        self.ticks += 1;
        let over = self.ticks - self.settings.wait; // one tick more: the first may come at once
        self.flush(|held| held.last < over);
    }

    fn close(&mut self) {
        self.flush(|_| true);
    }
}

impl Join {
    /// The values of all keys, each with its length, so that "ab" "c" is not "a" "bc".
    fn identity(&self, m: &Message) -> weir::Result<Vec<u8>> {
        let mut id = Vec::new();
        for key in &self.settings.by {
            let value = m.bytes(key)?.unwrap_or_default();
            id.extend_from_slice(&(value.len() as u32).to_le_bytes());
            id.extend_from_slice(&value);
        }
        Ok(id)
    }

    /// Emits what is done and what is due, the oldest first. What cannot be emitted now stays until the next tick.
    fn flush(&mut self, due: impl Fn(&Held) -> bool) {
        let over: Vec<Vec<u8>> = self.held.iter().filter(|(_, held)| due(held)).map(|(id, _)| id.clone()).collect();
        for id in over {
            self.done.extend(self.held.remove(&id));
        }
        self.done.sort_by_key(|held| held.last);
        let mut emitted = 0;
        for held in &self.done {
            if let Err(e) = held.emit() {
                weir::log!(Warn, "join-traces: a trace has to wait: {}", e);
                break;
            }
            self.bytes -= held.size();
            emitted += 1;
        }
        self.done.drain(..emitted);
    }
}

impl Held {
    /// Only the text grows, by a line and its break at a time.
    fn size(&self) -> usize {
        self.record.len() + self.trace.text.len() + 256
    }

    /// Emits the first line's message with all lines in it.
    fn emit(&self) -> weir::Result<()> {
        let mut record = self.record.strip_suffix('}').unwrap_or("{").as_bytes().to_vec();
        let mut more = Record::new().text("message", &self.trace.text);
        if self.trace.lines > 1 {
            more = more.int("lines", self.trace.lines as i64);
        }
        record.push(b',');
        record.extend_from_slice(&more.finish()[1..]);
        weir::emit(record)
    }
}
