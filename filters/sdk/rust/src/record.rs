use crate::error::Result;

/// Writes record JSON, for [`emit`](crate::emit) and [`Message::set_record`](crate::Message::set_record).
///
/// ```no_run
/// # fn f() -> weir::Result<()> {
/// weir::Record::new().text("message", "second half").int("part", 2).emit()?;
/// # Ok(()) }
/// ```
///
/// Of a key that is given twice the last counts. Bytes that are not UTF-8 are kept as they are.
pub struct Record {
    json: Vec<u8>,
}

impl Default for Record {
    fn default() -> Record {
        Record::new()
    }
}

impl Record {
    pub fn new() -> Record {
        Record { json: b"{".to_vec() }
    }

    pub fn text(self, key: &str, value: impl AsRef<[u8]>) -> Record {
        let mut r = self.key(key);
        quote_into(&mut r.json, value.as_ref());
        r
    }

    pub fn int(self, key: &str, value: i64) -> Record {
        self.json(key, value.to_string())
    }

    /// A float; one that is not finite makes the record invalid.
    pub fn float(self, key: &str, value: f64) -> Record {
        self.json(key, format!("{:?}", value))
    }

    pub fn bool(self, key: &str, value: bool) -> Record {
        self.json(key, if value { "true" } else { "false" })
    }

    /// Any JSON value, also one that [`Message::get`](crate::Message::get) gave for an array or an object.
    pub fn json(self, key: &str, value: impl AsRef<[u8]>) -> Record {
        let mut r = self.key(key);
        r.json.extend_from_slice(value.as_ref());
        r
    }

    /// The record as JSON.
    pub fn finish(mut self) -> Vec<u8> {
        self.json.push(b'}');
        self.json
    }

    /// Emits it: see [`emit`](crate::emit).
    pub fn emit(self) -> Result<()> {
        crate::emit(self.finish())
    }

    fn key(mut self, key: &str) -> Record {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        quote_into(&mut self.json, key.as_bytes());
        self.json.push(b':');
        self
    }
}

/// Text as a JSON string, to build arrays and objects for [`Message::set_json`](crate::Message::set_json). Bytes that are not
/// UTF-8 are kept as they are.
pub fn quote(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut json = Vec::new();
    quote_into(&mut json, text.as_ref());
    json
}

fn quote_into(to: &mut Vec<u8>, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    to.push(b'"');
    let mut rest = text;
    while let Some(i) = rest.iter().position(|&c| c < 0x20 || c == b'"' || c == b'\\') {
        let (plain, c) = (&rest[..i], rest[i]);
        to.extend_from_slice(plain);
        if c < 0x20 {
            to.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[(c >> 4) as usize], HEX[(c & 15) as usize]]);
        } else {
            to.extend_from_slice(&[b'\\', c]);
        }
        rest = &rest[i + 1..];
    }
    to.extend_from_slice(rest);
    to.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::Record;

    #[test]
    fn writes_json() {
        let r = Record::new().text("a\"b", "c\\d\n\u{1}é").int("i", -7).float("f", 2.0).bool("t", true).json("n", "null");
        assert_eq!(String::from_utf8(r.finish()).unwrap(), r#"{"a\"b":"c\\d\u000a\u0001é","i":-7,"f":2.0,"t":true,"n":null}"#);
        assert_eq!(Record::new().finish(), b"{}");
    }
}
