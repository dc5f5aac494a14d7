// The script guest on the Rust SDK: it does what a message lists in the field do, and puts what came of each step into the
// field did.
// ../README.md has the steps; ../script_c does the same on the C SDK.
use std::time::Duration;

use weir::{kv, metric, Failure, Filter, Json, Level, Message, Record, Type, Verdict};

struct Script {
    did: Vec<String>, // what came of the steps
}

weir::filter!(type Script);

impl Filter for Script {
    fn start() -> Result<Script, Failure> {
        let mut s = Script { did: Vec::new() };
        let config = weir::config_text();
        let mut end = Verdict::Keep;
        let mut reason = String::new();
        // What weir does around a call, so that the steps have a message to fail with.
        weir::process_with(|m| {
            if let Some(steps) = Json::new(&config).member("init") {
                end = s.run(m, steps, &mut reason);
            }
            Verdict::Keep
        });
        if end != Verdict::Keep {
            return Err(reason.into());
        }
        Ok(s)
    }

    fn process(&mut self, m: &mut Message) -> Result<Verdict, Failure> {
        let mut verdict = Verdict::Keep;
        if let Some(steps) = m.get("do")? {
            m.unset("do")?;
            verdict = self.run(m, Json::new(&steps), &mut String::new());
        }
        if !self.did.is_empty() {
            let did: Vec<Vec<u8>> = self.did.drain(..).map(weir::quote).collect();
            m.set_json("did", [&b"["[..], &did.join(&b','), b"]"].concat()).unwrap();
        }
        Ok(verdict)
    }

    fn tick(&mut self) {
        self.configured("tick")
    }

    fn close(&mut self) {
        self.configured("close")
    }
}

impl Script {
    fn configured(&mut self, list: &str) {
        let config = weir::config_text();
        weir::process_with(|m| {
            if let Some(steps) = Json::new(&config).member(list) {
                self.run(m, steps, &mut String::new());
            }
            Verdict::Keep
        });
    }

    fn run(&mut self, m: &mut Message, steps: Json<'_>, reason: &mut String) -> Verdict {
        for step in steps.elements() {
            let words: Vec<String> = step.elements().map(|w| w.text().unwrap()).collect();
            let mut a = [""; 4];
            for (to, word) in a.iter_mut().zip(&words) {
                *to = word;
            }
            match a[0] {
                "verdict" => {
                    return match a[1] {
                        "0" => Verdict::Keep,
                        "1" => Verdict::Drop,
                        "2" => Verdict::Skip,
                        "3" => Verdict::Reject,
                        _ => Verdict::Failed,
                    }
                }
                "trap" => panic!("as the script says"),
                "fail" => {
                    *reason = a[1].to_string();
                    weir::fail(a[1])
                }
                "log" => weir::write_log(level(a[1]), a[2]),
                "tell" => weir::write_log(Level::Info, self.did.last().unwrap()),
                _ => {
                    let head = words[..words.len().min(3)].join(" ");
                    let result = result(m, &a).unwrap_or_else(|e| e.kind().to_string());
                    self.did.push(format!("{} = {}", head, result));
                }
            }
        }
        Verdict::Keep
    }
}

fn level(text: &str) -> Level {
    [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error][number(text) as usize]
}

fn number(text: &str) -> i64 {
    text.parse().unwrap()
}

fn thousandths(text: &str) -> f64 {
    match text {
        "nan" => f64::NAN,
        "inf" => f64::INFINITY,
        n => number(n) as f64 / 1000.0,
    }
}

/// Done without an answer.
fn ok(_: ()) -> String {
    "ok".to_string()
}

fn or_absent<T: ToString>(v: Option<T>) -> String {
    v.map_or("absent".to_string(), |v| v.to_string())
}

fn result(m: &mut Message, a: &[&str; 4]) -> weir::Result<String> {
    let key = a[1];
    Ok(match a[0] {
        "get" => {
            let got = m.get(key)?;
            let mut read = b"what was there".to_vec();
            if m.read(key, &mut read)? != got.is_some() || got.as_ref().map_or(false, |g| g.as_bytes() != read) {
                return Ok("read differs".to_string());
            }
            or_absent(got)
        }
        "equals" => m.is(key, a[2]).to_string(),
        "size" => or_absent(m.bytes(key)?.map(|b| b.len())),
        "type" => match m.kind(key) {
            Type::Absent => "absent",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Float => "float",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Array => "array",
            Type::Object => "object",
        }
        .to_string(),
        "get_i64" => or_absent(m.int(key)?),
        "get_f64" => or_absent(m.float(key)?.map(|f| format!("{}e-3", (f * 1000.0) as i64))),
        "set" => ok(m.set(key, a[2])?),
        "set_bytes" => {
            let bytes: Vec<u8> = a[2].bytes().map(|c| if c == b'~' { 0xff } else { c }).collect();
            ok(m.set(key, bytes)?)
        }
        "copy" => match m.bytes(key)? {
            Some(b) => ok(m.set(a[2], b)?),
            None => or_absent::<String>(None),
        },
        "set_json" => ok(m.set_json(key, a[2])?),
        "set_i64" => ok(m.set(key, number(a[2]))?),
        "set_f64" => ok(m.set(key, thousandths(a[2]))?),
        "set_bool" => ok(m.set(key, a[2] == "true")?),
        "unset" => ok(m.unset(key)?),
        "count" => m.count().to_string(),
        "names" => m.fields().collect::<Vec<_>>().join(","),
        "param" => or_absent(m.param(key, a[2])?),
        "set_param" => ok(m.set_param(key, a[2], a[3])?),
        "unset_param" => ok(m.unset_param(key, a[2])?),
        "unset_element" => ok(m.unset_element(key)?),
        "record" => m.record()?,
        "set_record" => ok(m.set_record(key)?),
        "emit" => ok(weir::emit(key)?),
        "route" => ok(m.route(key)?),
        "kv_get" => or_absent(kv::get(key)?),
        "kv_set" => {
            let ttl = if a[3].is_empty() { 0 } else { number(a[3]) };
            ok(kv::set(key, a[2], if ttl > 0 { Some(Duration::from_millis(ttl as u64)) } else { None })?)
        }
        "kv_del" => (if kv::delete(key)? { "ok" } else { "absent" }).to_string(),
        "kv_add" => kv::add(key, number(a[2]))?.to_string(),
        "metric_add" => ok(metric::add(key, thousandths(a[2]))),
        "metric_set" => ok(metric::set(key, thousandths(a[2]))),
        "enabled" => weir::log_enabled(level(key)).to_string(),
        "now" => (if weir::now() > 1577836800000000000 { "ok" } else { "before 2020" }).to_string(),
        "random" => (if weir::random() != weir::random() { "ok" } else { "the same twice" }).to_string(),
        "wait" => {
            let until = weir::now() + number(key) * 1_000_000;
            while weir::now() < until {}
            ok(())
        }
        "long" => ok(m.set(key, "x".repeat(number(a[2]) as usize))?),
        "long_key" => ok(m.set(&"k".repeat(number(key) as usize), "v")?),
        "long_kv" => ok(kv::set(key, "x".repeat(number(a[2]) as usize), None)?),
        "fill" => fill(key, |i| m.set(&format!("f{}", i), i)),
        "fill_params" => fill(key, |i| m.set_param("fill@32473", &format!("f{}", i), "v")),
        "fill_kv" => fill(key, |i| kv::set(&format!("f{}", i), "v", None)),
        "fill_emits" => fill(key, |i| Record::new().int("i", i).emit()),
        _ => panic!("no step {}", a[0]),
    })
}

fn fill(n: &str, mut set: impl FnMut(i64) -> weir::Result<()>) -> String {
    for i in 0..number(n) {
        if let Err(e) = set(i) {
            return format!("{} at {}", e.kind(), i);
        }
    }
    "ok".to_string()
}
