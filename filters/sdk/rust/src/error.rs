use core::fmt;

/// What the host answers instead of doing what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no such field, parameter, element, key or destination.
    Absent,
    /// The value is of another type; for the getters that return a `String`: it is not UTF-8.
    WrongType,
    /// The key, value or text is over its limit.
    TooLong,
    /// The key is read-only.
    NotPermitted,
    /// The key or the value is none.
    Invalid,
    /// A quota is used up (1000 fields, 1000 parameters, 1000 emitted messages, 10 000 kv keys …), or no memory is free.
    TooMany,
    /// Not available in this function, such as a message in `start`.
    NotHere,
    /// A number that this version of the crate does not know.
    Unknown,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::Absent => "absent",
            ErrorKind::WrongType => "wrong type",
            ErrorKind::TooLong => "too long",
            ErrorKind::NotPermitted => "not permitted",
            ErrorKind::Invalid => "invalid",
            ErrorKind::TooMany => "too many",
            ErrorKind::NotHere => "not available here",
            ErrorKind::Unknown => "unknown error",
        })
    }
}

/// An [`ErrorKind`] and the name it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    name: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, name: &str) -> Error {
        Error { kind, name: name.to_owned() }
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.kind)
    }
}

impl std::error::Error for Error {}

pub type Result<T> = core::result::Result<T, Error>;

/// Turns the host's answer into a result: what is not negative is a length or a number.
pub(crate) fn answer(n: i32, name: &str) -> Result<usize> {
    if n >= 0 {
        return Ok(n as usize);
    }
    let kind = match n {
        -1 => ErrorKind::Absent,
        -2 => ErrorKind::WrongType,
        -3 => ErrorKind::TooLong,
        -4 => ErrorKind::NotPermitted,
        -5 => ErrorKind::Invalid,
        -6 => ErrorKind::TooMany,
        -7 => ErrorKind::NotHere,
        _ => ErrorKind::Unknown,
    };
    Err(Error::new(kind, name))
}

/// Turns "absent" into `None`.
pub(crate) fn optional<T>(r: Result<T>) -> Result<Option<T>> {
    match r {
        Ok(v) => Ok(Some(v)),
        Err(e) if e.kind == ErrorKind::Absent => Ok(None),
        Err(e) => Err(e),
    }
}

/// Why a call failed, or why a configuration is refused: a text. It is made by `?` from any error that can be shown,
/// and from texts: `return Err("no table".into())`.
///
/// The text is told where the message goes (the dead letters, the log); at most 4 KiB of it.
#[derive(Debug)]
pub struct Failure(pub(crate) String);

// Failure is itself not Display, or this would collide with From<T> for T.
impl<E: fmt::Display> From<E> for Failure {
    fn from(e: E) -> Failure {
        Failure(e.to_string())
    }
}
