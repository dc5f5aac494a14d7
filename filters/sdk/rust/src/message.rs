use crate::abi;
use crate::buffer::{into, text, whole};
use crate::error::{answer, optional, Error, Result};

/// The message in hand. There is one during a call only, so it cannot be made nor kept.
///
/// Keys are literal: `a.b` is one name. The message's own are `timestamp` (ns since 1970), `facility`, `severity`,
/// `hostname`, `app_name`, `proc_id`, `msg_id`, `message` and, read-only, `received_at`, `structured_data`, `raw`,
/// `source`, `listener`, `peer`. Every other key is a field.
///
/// A getter answers `Ok(None)` for what is absent, and an [`Error`] for what cannot be given: `?` on it fails the call,
/// which is right whenever the filter has to look at the value. Values of any length come whole.
pub struct Message {
    _private: (),
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Absent = 0,
    Null = 1,
    Bool = 2,
    Int = 3,
    Float = 4,
    String = 5,
    /// Text that is not UTF-8.
    Bytes = 6,
    Array = 7,
    Object = 8,
}

/// What [`Message::set`] takes: texts, bytes, integers up to 64 bits with a sign, floats, booleans.
///
/// Text that goes into the message's own `timestamp`, `facility` and `severity` is parsed: decimal digits, RFC 3339, or a
/// keyword such as `warning`. A float that is not finite is [`Invalid`](crate::ErrorKind::Invalid).
pub trait Value {
    #[doc(hidden)]
    fn set(&self, key: &str) -> i32;
}

macro_rules! values {
    ($($type:ty: |$v:ident, $key:ident| $set:expr;)+) => {
        $(impl Value for $type {
            fn set(&self, $key: &str) -> i32 {
                let $v = self;
                // SAFETY: addresses and lengths are of live slices.
                unsafe { $set }
            }
        })+
    };
}

values! {
    str: |v, key| abi::field_set(key.as_ptr(), key.len(), v.as_ptr(), v.len());
    String: |v, key| abi::field_set(key.as_ptr(), key.len(), v.as_ptr(), v.len());
    [u8]: |v, key| abi::field_set(key.as_ptr(), key.len(), v.as_ptr(), v.len());
    Vec<u8>: |v, key| abi::field_set(key.as_ptr(), key.len(), v.as_ptr(), v.len());
    i32: |v, key| abi::field_set_i64(key.as_ptr(), key.len(), *v as i64);
    u32: |v, key| abi::field_set_i64(key.as_ptr(), key.len(), *v as i64);
    u16: |v, key| abi::field_set_i64(key.as_ptr(), key.len(), *v as i64);
    u8: |v, key| abi::field_set_i64(key.as_ptr(), key.len(), *v as i64);
    usize: |v, key| abi::field_set_i64(key.as_ptr(), key.len(), *v as i64); // 32 bits in WebAssembly
    i64: |v, key| abi::field_set_i64(key.as_ptr(), key.len(), *v);
    f64: |v, key| abi::field_set_f64(key.as_ptr(), key.len(), *v);
    bool: |v, key| { let t = if *v { "true" } else { "false" }; abi::field_set_json(key.as_ptr(), key.len(), t.as_ptr(), t.len()) };
}

impl<T: Value + ?Sized> Value for &T {
    fn set(&self, key: &str) -> i32 {
        (**self).set(key)
    }
}

impl Message {
    pub(crate) fn in_hand() -> Message {
        Message { _private: () }
    }

    /// The value of `key` as text: numbers in decimal (times in ns since 1970), `true` or `false`, arrays and objects as
    /// compact JSON, `null`. A text that is not UTF-8, as senders do not always care, is
    /// [`WrongType`](crate::ErrorKind::WrongType): [`Message::bytes`] gives it as it is, [`Message::get_lossy`] to look at.
    pub fn get(&self, key: &str) -> Result<Option<String>> {
        match self.bytes(key)? {
            Some(b) => text(key, b).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Message::get`], with U+FFFD for what is not UTF-8: for a filter that looks at a text and does not set it again.
    pub fn get_lossy(&self, key: &str) -> Result<Option<String>> {
        Ok(self.bytes(key)?.map(|b| match String::from_utf8(b) {
            Ok(text) => text,
            Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
        }))
    }

    /// As [`Message::get`], for texts that need not be UTF-8.
    pub fn bytes(&self, key: &str) -> Result<Option<Vec<u8>>> {
        optional(whole(key, |buf, cap| unsafe { abi::field_get(key.as_ptr(), key.len(), buf, cap) }))
    }

    /// As [`Message::bytes`], over what is in `to`: it allocates only when `to` must grow. False when `key` is absent.
    pub fn read(&self, key: &str, to: &mut Vec<u8>) -> Result<bool> {
        let r = into(to, 0, key, |buf, cap| unsafe { abi::field_get(key.as_ptr(), key.len(), buf, cap) });
        Ok(optional(r)?.is_some())
    }

    /// Tells whether `key` is there with exactly this text; numbers are compared as decimal text. It does not allocate.
    pub fn is(&self, key: &str, want: &str) -> bool {
        let mut short = [0; 64];
        let mut long = Vec::new();
        let to = if want.len() <= short.len() {
            &mut short[..want.len()]
        } else {
            long.resize(want.len(), 0);
            &mut long[..]
        };
        let n = unsafe { abi::field_get(key.as_ptr(), key.len(), to.as_mut_ptr(), to.len()) };
        n >= 0 && n as usize == want.len() && to == want.as_bytes()
    }

    /// An integer. Text is never parsed: anything else is [`WrongType`](crate::ErrorKind::WrongType).
    pub fn int(&self, key: &str) -> Result<Option<i64>> {
        let mut v = 0;
        optional(answer(unsafe { abi::field_get_i64(key.as_ptr(), key.len(), &mut v) }, key).map(|_| v))
    }

    /// A float, or an integer's value. Text is never parsed: anything else is [`WrongType`](crate::ErrorKind::WrongType).
    pub fn float(&self, key: &str) -> Result<Option<f64>> {
        let mut v = 0.0;
        optional(answer(unsafe { abi::field_get_f64(key.as_ptr(), key.len(), &mut v) }, key).map(|_| v))
    }

    /// The type of the value, [`Type::Absent`] when there is none.
    pub fn kind(&self, key: &str) -> Type {
        match unsafe { abi::field_type(key.as_ptr(), key.len()) } {
            1 => Type::Null,
            2 => Type::Bool,
            3 => Type::Int,
            4 => Type::Float,
            5 => Type::String,
            6 => Type::Bytes,
            7 => Type::Array,
            8 => Type::Object,
            _ => Type::Absent,
        }
    }

    /// Sets `key`: see [`Value`].
    pub fn set(&mut self, key: &str, value: impl Value) -> Result<()> {
        answer(value.set(key), key).map(drop)
    }

    /// Sets any JSON value. `null` makes one of the message's own keys absent. What is no JSON is
    /// [`Invalid`](crate::ErrorKind::Invalid).
    pub fn set_json(&mut self, key: &str, json: impl AsRef<[u8]>) -> Result<()> {
        let v = json.as_ref();
        answer(unsafe { abi::field_set_json(key.as_ptr(), key.len(), v.as_ptr(), v.len()) }, key).map(drop)
    }

    /// Makes `key` absent. [`Absent`](crate::ErrorKind::Absent) when it was; [`NotPermitted`](crate::ErrorKind::NotPermitted)
    /// for `facility`, `severity` and read-only keys.
    pub fn unset(&mut self, key: &str) -> Result<()> {
        answer(unsafe { abi::field_unset(key.as_ptr(), key.len()) }, key).map(drop)
    }

    /// How many fields there are. The message's own keys are none.
    pub fn count(&self) -> usize {
        unsafe { abi::field_count() }.max(0) as usize
    }

    /// The names of the fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = String> + '_ {
        (0..).map_while(|i| {
            let name = whole("field_name", |buf, cap| unsafe { abi::field_name(i, buf, cap) }).ok()?;
            String::from_utf8(name).ok()
        })
    }

    /// A parameter of the structured data, the first of repeated ones. One that is not UTF-8 is
    /// [`WrongType`](crate::ErrorKind::WrongType): see [`Message::param_bytes`].
    pub fn param(&self, id: &str, name: &str) -> Result<Option<String>> {
        match self.param_bytes(id, name)? {
            Some(b) => text(name, b).map(Some),
            None => Ok(None),
        }
    }

    /// As [`Message::param`], for values that need not be UTF-8.
    pub fn param_bytes(&self, id: &str, name: &str) -> Result<Option<Vec<u8>>> {
        optional(whole(name, |buf, cap| unsafe {
            abi::sd_get(id.as_ptr(), id.len(), name.as_ptr(), name.len(), buf, cap)
        }))
    }

    /// Sets a parameter of the structured data, and makes its element when there is none.
    /// [`Invalid`](crate::ErrorKind::Invalid) for names that RFC 5424 forbids.
    pub fn set_param(&mut self, id: &str, name: &str, value: impl AsRef<[u8]>) -> Result<()> {
        let v = value.as_ref();
        let n = unsafe { abi::sd_set(id.as_ptr(), id.len(), name.as_ptr(), name.len(), v.as_ptr(), v.len()) };
        answer(n, name).map(drop)
    }

    /// Removes a parameter, all of that name. [`Absent`](crate::ErrorKind::Absent) when there is none.
    pub fn unset_param(&mut self, id: &str, name: &str) -> Result<()> {
        answer(unsafe { abi::sd_unset(id.as_ptr(), id.len(), name.as_ptr(), name.len()) }, name).map(drop)
    }

    /// Removes a whole element of the structured data. [`Absent`](crate::ErrorKind::Absent) when there is none.
    pub fn unset_element(&mut self, id: &str) -> Result<()> {
        answer(unsafe { abi::sd_unset(id.as_ptr(), id.len(), id.as_ptr(), 0) }, id).map(drop)
    }

    /// The whole message as record JSON (filters/ABI.md).
    pub fn record(&self) -> Result<String> {
        text("record", whole("record", |buf, cap| unsafe { abi::record_get(buf, cap) })?)
    }

    /// Replaces the whole message by record JSON; what it leaves out becomes absent, except `received_at`, `raw`, `source`,
    /// `listener` and `peer`, which stay. One bad part refuses all of it: [`Invalid`](crate::ErrorKind::Invalid).
    pub fn set_record(&mut self, json: impl AsRef<[u8]>) -> Result<()> {
        let v = json.as_ref();
        answer(unsafe { abi::record_set(v.as_ptr(), v.len()) }, "record").map(drop)
    }

    /// Sends the message only to this destination of its route, and to those named before. A name that the route does not
    /// have is [`Absent`](crate::ErrorKind::Absent). It is undone when the call fails or rejects.
    pub fn route(&mut self, destination: &str) -> Result<()> {
        answer(unsafe { abi::route(destination.as_ptr(), destination.len()) }, destination).map(drop)
    }
}

impl Error {
    /// True for what was not there, such as a field that [`Message::unset`] did not find.
    pub fn is_absent(&self) -> bool {
        self.kind() == crate::ErrorKind::Absent
    }
}
