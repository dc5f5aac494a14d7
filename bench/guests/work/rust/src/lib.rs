//! work is ../../c/work.c in Rust.

use weir::{Failure, Filter, Message, Verdict};

#[derive(Default)]
struct Work {
    text: Vec<u8>, // these keep their memory from message to message
    kind: Vec<u8>,
}

weir::filter!(type Work);

impl Filter for Work {
    fn start() -> Result<Work, Failure> {
        Ok(Work::default())
    }

    fn process(&mut self, m: &mut Message) -> Result<Verdict, Failure> {
        if !m.read("message", &mut self.text)? || !m.read("app_name", &mut self.kind)? {
            return Err("no message or app_name".into());
        }
        self.kind.push(b'/');
        self.kind.extend(self.text.iter().take(8).take_while(|&&c| c != b' '));
        if self.text.len() >= 1000 {
            let mut h = 2166136261u32;
            for _ in 0..16 {
                for &c in &self.text {
                    h = (h ^ u32::from(c)).wrapping_mul(16777619);
                }
            }
            self.kind.push(b'a' + (h % 26) as u8);
        }
        m.set("kind", &self.kind[..])?;
        Ok(Verdict::Keep)
    }
}
