//! What belongs to a stack trace, by the way its lines begin.

/// A trace that is not finished.
pub struct Trace {
    pub text: Vec<u8>,
    pub lines: usize,
    kind: Kind,
    ended: bool, // Python: the line behind the frames was there
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Python,
    Go,
    Other, // Java, JavaScript, .NET, Ruby …: frames are indented
}

impl Trace {
    /// A trace that begins with this text; None when none does.
    pub fn starting(text: Vec<u8>, start: &[String]) -> Option<Trace> {
        let kind = if contains(&text, b"Traceback (most recent call last):") {
            Kind::Python
        } else if [&b"panic: "[..], b"fatal error: ", b"goroutine "].iter().any(|s| text.starts_with(s)) {
            Kind::Go
        } else if names_error(&text) || start.iter().any(|s| contains(&text, s.as_bytes())) {
            Kind::Other
        } else {
            return None;
        };
        Some(Trace { text, lines: 1, kind, ended: false })
    }

    /// Takes one more line; false when it is not of this trace.
    pub fn take(&mut self, line: &[u8]) -> bool {
        let begins = |all: &[&[u8]]| all.iter().any(|s| line.starts_with(s));
        let indented = begins(&[b" ", b"\t"]);
        let more = match self.kind {
            Kind::Python if indented || line.is_empty() => true,
            Kind::Python if begins(&[b"Traceback (most", b"During handling of the above", b"The above exception was"]) => {
                self.ended = false;
                true
            }
            Kind::Python if !self.ended && self.lines > 1 => {
                self.ended = true; // "ValueError: …" behind the frames
                true
            }
            Kind::Python => false,
            Kind::Go => {
                indented || line.is_empty() || is_call(line)
                    || begins(&[b"goroutine ", b"created by ", b"exit status", b"[signal ", b"panic: ", b"runtime stack:"])
            }
            Kind::Other => indented || begins(&[b"at ", b"Caused by: ", b"Suppressed: ", b"... ", b"--- End of "]),
        };
        if more {
            self.text.push(b'\n');
            self.text.extend_from_slice(line);
            self.lines += 1;
        }
        more
    }
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    text.windows(what.len()).any(|w| w == what)
}

/// A word that ends in Exception or Error, with a colon or nothing behind it; and Java's "Exception in thread".
fn names_error(text: &[u8]) -> bool {
    let first = text.split(|&c| c == b'\n').next().unwrap_or(text);
    if contains(first, b"Exception in thread ") {
        return true;
    }
    [&b"Exception"[..], b"Error"].iter().any(|name| {
        first.windows(name.len()).enumerate().any(|(i, w)| w == *name && matches!(first.get(i + name.len()), None | Some(b':')))
    })
}

/// Go's line before a frame: main.(*T).run(0xc000, 0x1)
fn is_call(line: &[u8]) -> bool {
    match line.iter().position(|&c| c == b' ' || c == b'(') {
        Some(i) => i > 0 && line[i] == b'(' && line.ends_with(b")") && line[..i].contains(&b'.'),
        None => false,
    }
}
