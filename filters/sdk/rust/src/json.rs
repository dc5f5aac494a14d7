/// One JSON value inside of a text: for a filter's configuration, and for arrays and objects from
/// [`Message::get`](crate::Message::get).
///
/// It walks over what the host wrote and does not check; a text of the sender's is checked by
/// [`Message::set_json`](crate::Message::set_json) first. Depth costs no stack.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a> {
    text: &'a str,
}

const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

impl<'a> Json<'a> {
    /// The first value of text.
    pub fn new(text: &'a str) -> Json<'a> {
        let text = text.trim_start_matches(SPACE);
        Json { text: &text[..end(text)] }
    }

    /// The value as it stands in the text.
    pub fn as_str(self) -> &'a str {
        self.text
    }

    pub fn is_null(self) -> bool {
        self.text == "null"
    }

    pub fn bool(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// A whole number without fraction or exponent that fits.
    pub fn int(self) -> Option<i64> {
        self.text.parse().ok()
    }

    pub fn float(self) -> Option<f64> {
        match self.text.bytes().next()? {
            b'-' | b'0'..=b'9' => self.text.parse().ok(),
            _ => None, // what Rust reads beyond JSON
        }
    }

    /// A string's text, escapes resolved, lone surrogates as U+FFFD.
    pub fn text(self) -> Option<String> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        let mut out = String::with_capacity(inner.len());
        let mut rest = inner;
        while let Some(i) = rest.find('\\') {
            out.push_str(&rest[..i]);
            rest = &rest[i + 1..];
            let c = rest.chars().next()?;
            rest = &rest[c.len_utf8()..];
            out.push(match c {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let (c, len) = escaped(rest)?;
                    rest = &rest[len..];
                    c
                }
                c => c,
            });
        }
        out.push_str(rest);
        Some(out)
    }

    /// An array's elements; of anything else there are none.
    pub fn elements(self) -> impl Iterator<Item = Json<'a>> {
        let mut walk = self.inside('[');
        core::iter::from_fn(move || next(&mut walk))
    }

    /// An object's members, in order; of anything else there are none.
    pub fn members(self) -> impl Iterator<Item = (String, Json<'a>)> {
        let mut walk = self.inside('{');
        core::iter::from_fn(move || {
            let name = next(&mut walk)?;
            let value = next(&mut walk)?;
            Some((name.text()?, value))
        })
    }

    /// The object's member of this name, the last of several.
    pub fn member(self, name: &str) -> Option<Json<'a>> {
        self.members().filter(|(n, _)| n == name).last().map(|(_, v)| v)
    }

    pub fn is_array(self) -> bool {
        self.text.starts_with('[')
    }

    pub fn is_object(self) -> bool {
        self.text.starts_with('{')
    }

    fn inside(self, open: char) -> &'a str {
        self.text.strip_prefix(open).unwrap_or("")
    }
}

/// Takes the next value off walk.
fn next<'a>(walk: &mut &'a str) -> Option<Json<'a>> {
    let text = walk.trim_start_matches(|c| SPACE.contains(&c) || c == ',' || c == ':');
    let n = end(text);
    *walk = &text[n..];
    if n == 0 {
        return None; // the end of the array or the object
    }
    Some(Json { text: &text[..n] })
}

/// The length of the value that text begins with; 0 at a closing bracket.
fn end(text: &str) -> usize {
    let b = text.as_bytes();
    let (mut i, mut depth) = (0, 0);
    while i < b.len() {
        match b[i] {
            b'"' => {
                i += 1;
                while i < b.len() && b[i] != b'"' {
                    i += if b[i] == b'\\' { 2 } else { 1 };
                }
                i += 1;
            }
            b'{' | b'[' => {
                depth += 1;
                i += 1;
                continue;
            }
            b'}' | b']' if depth == 0 => return i,
            b'}' | b']' => {
                depth -= 1;
                i += 1;
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return i,
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {
                i += 1;
                continue;
            }
            _ => {
                while i < b.len() && !b",]}: \t\n\r".contains(&b[i]) {
                    i += 1;
                }
            }
        }
        if depth == 0 {
            break;
        }
    }
    // Behind a backslash that nothing follows, or inside of a character behind one: not what the host writes.
    let mut i = i.min(b.len());
    while !text.is_char_boundary(i) {
        i += 1;
    }
    i
}

/// The character of the four digits behind \u and, for a pair of surrogates, of the escape that follows; and the length of
/// both.
fn escaped(rest: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u32::from_str_radix(rest.get(at..at + 4)?, 16).ok();
    let high = unit(0)?;
    if (0xd800..0xdc00).contains(&high) && rest.get(4..6) == Some("\\u") {
        if let Some(low @ 0xdc00..=0xdfff) = unit(6) {
            return Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, 10));
        }
    }
    Some((char::from_u32(high).unwrap_or('\u{fffd}'), 4))
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn walks() {
        let v = Json::new(" {\"a\": [1, -2 ,[3,{}]], \"b\\n\":\"\\ud83d\\ude00\\u00e9\\ud800\\\"\" ,\"c\":{\"d\":1.5e1},\"c\":null} ");
        let names: Vec<_> = v.members().map(|(n, v)| (n, v.as_str())).collect();
        assert_eq!(names[0], ("a".into(), "[1, -2 ,[3,{}]]"));
        assert_eq!(names[1], ("b\n".into(), "\"\\ud83d\\ude00\\u00e9\\ud800\\\"\""));
        assert_eq!(v.member("b\n").unwrap().text().unwrap(), "😀é\u{fffd}\"");
        assert!(v.member("c").unwrap().is_null());
        let a: Vec<_> = v.member("a").unwrap().elements().map(|e| e.int()).collect();
        assert_eq!(a, [Some(1), Some(-2), None]);
        assert_eq!(names[2].1, "{\"d\":1.5e1}");
        assert_eq!(Json::new("1.5e1").float(), Some(15.0));
        assert_eq!(Json::new("inf").float(), None);
        assert_eq!(Json::new("9223372036854775808").int(), None);
        assert_eq!(Json::new("[]").elements().count() + Json::new("{}").members().count() + Json::new("7").elements().count(), 0);
    }

    #[test]
    fn anything_else_ends() {
        for text in ["", "\"", "\"\\", "\"\\é", "{", "{\"a\"", "{\"a\":", "[1", "]", "{]", "[}", "\"\\u12", "\"\\ud800\\u\"", "\"\\u+123\""] {
            let v = Json::new(text);
            v.text();
            v.elements().count();
            v.members().count();
        }
    }
}
