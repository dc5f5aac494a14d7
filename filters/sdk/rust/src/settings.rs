use std::collections::BTreeMap;

use crate::error::Failure;
use crate::json::Json;

/// What a setting of [`settings!`](crate::settings!) can be.
pub trait Setting: Sized {
    /// What the value must be, for the sentence "… must be".
    const IS: &'static str;

    /// `None` when the value is something else.
    fn from_json(value: Json<'_>) -> Option<Self>;
}

macro_rules! settings_of {
    ($($type:ty: $is:literal, |$v:ident| $read:expr;)+) => {
        $(impl Setting for $type {
            const IS: &'static str = $is;
            fn from_json($v: Json<'_>) -> Option<Self> {
                $read
            }
        })+
    };
}

settings_of! {
    bool: "true or false", |v| v.bool();
    i64: "an integer", |v| v.int();
    i32: "an integer of 32 bits", |v| v.int()?.try_into().ok();
    u32: "an integer from 0 of 32 bits", |v| v.int()?.try_into().ok();
    u16: "an integer from 0 of 16 bits", |v| v.int()?.try_into().ok();
    u8: "an integer from 0 to 255", |v| v.int()?.try_into().ok();
    usize: "an integer from 0", |v| v.int()?.try_into().ok();
    f64: "a number", |v| v.float();
    String: "a text", |v| v.text();
}

impl<T: Setting> Setting for Option<T> {
    const IS: &'static str = T::IS;
    fn from_json(v: Json<'_>) -> Option<Self> {
        if v.is_null() {
            return Some(None);
        }
        T::from_json(v).map(Some)
    }
}

impl<T: Setting> Setting for Vec<T> {
    const IS: &'static str = "a list";
    fn from_json(v: Json<'_>) -> Option<Self> {
        if !v.is_array() {
            return None;
        }
        v.elements().map(T::from_json).collect()
    }
}

impl<T: Setting> Setting for BTreeMap<String, T> {
    const IS: &'static str = "a mapping";
    fn from_json(v: Json<'_>) -> Option<Self> {
        if !v.is_object() {
            return None;
        }
        v.members().map(|(name, v)| Some((name, T::from_json(v)?))).collect()
    }
}

/// Makes a struct, and a function `read` that fills it from the filter's `config:`.
///
/// ```no_run
/// weir::settings! {
///     struct Settings {
///         field: String,                     // must be given
///         limit: i64 = 100,                  // may be left out
///         hosts: Vec<String> = Vec::new(),
///     }
/// }
/// # fn f() -> Result<(), weir::Failure> {
/// let settings = Settings::read()?;
/// # Ok(()) }
/// ```
///
/// A setting that is missing, of another type, or that the struct does not have is an error that names it. Types are those
/// with [`Setting`](crate::Setting): `bool`, `i64`, `i32`, `u32`, `u16`, `u8`, `usize`, `f64`, `String`, and `Option`,
/// `Vec` and `BTreeMap<String, _>` of them.
#[macro_export]
macro_rules! settings {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$doc:meta])* $fvis:vis $field:ident: $type:ty $(= $default:expr)?),* $(,)? }) => {
        $(#[$meta])*
        $vis struct $name { $($(#[$doc])* $fvis $field: $type),* }

        impl $name {
            /// Reads the filter's configuration.
            #[allow(dead_code)]
            $vis fn read() -> ::core::result::Result<$name, $crate::Failure> {
                $name::read_from(&$crate::config_text())
            }

            /// Reads a configuration as JSON.
            $vis fn read_from(config: &str) -> ::core::result::Result<$name, $crate::Failure> {
                let config = $crate::Json::new(config);
                $crate::only_these(config, &[$(::core::stringify!($field)),*])?;
                ::core::result::Result::Ok($name {
                    $($field: match $crate::setting(config, ::core::stringify!($field))? {
                        ::core::option::Option::Some(given) => given,
                        ::core::option::Option::None => $crate::settings!(@default $field $($default)?),
                    }),*
                })
            }
        }
    };
    (@default $field:ident $default:expr) => { $default };
    (@default $field:ident) => {
        return ::core::result::Result::Err(::core::concat!("config: ", ::core::stringify!($field), " is missing").into())
    };
}

#[doc(hidden)]
pub fn only_these(config: Json<'_>, names: &[&str]) -> Result<(), Failure> {
    for (name, _) in config.members() {
        if !names.contains(&name.as_str()) {
            return Err(format!("config: there is no setting {}: there are {}", name, names.join(", ")).into());
        }
    }
    Ok(())
}

#[doc(hidden)]
pub fn setting<T: Setting>(config: Json<'_>, name: &str) -> Result<Option<T>, Failure> {
    match config.member(name) {
        None => Ok(None),
        Some(v) => match T::from_json(v) {
            Some(given) => Ok(Some(given)),
            None => Err(format!("config: {} must be {}", name, T::IS).into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    crate::settings! {
        #[derive(Debug, PartialEq)]
        struct S {
            name: String,
            limit: i64 = 100,
            part: f64 = 0.5,
            on: bool = false,
            hosts: Vec<String> = Vec::new(),
            map: BTreeMap<String, i64> = BTreeMap::new(),
            maybe: Option<u32> = None,
        }
    }

    #[test]
    fn reads_into_a_struct() {
        let s = S::read_from(r#"{"name":"a\n","limit":7,"part":1,"on":true,"hosts":["x","y"],"map":{"k":1},"maybe":3}"#).unwrap();
        assert_eq!((s.name.as_str(), s.limit, s.part, s.on, s.maybe), ("a\n", 7, 1.0, true, Some(3)));
        assert_eq!((s.hosts.len(), s.map["k"]), (2, 1));
        assert_eq!(S::read_from(r#"{"name":"a"}"#).unwrap().limit, 100);
        assert_eq!(S::read_from(r#"{"name":"a","maybe":null}"#).unwrap().maybe, None);
    }

    #[test]
    fn names_what_is_wrong() {
        let check = |config: &str, want: &str| assert_eq!(S::read_from(config).unwrap_err().0, want);
        check("{}", "config: name is missing");
        check(r#"{"name":7}"#, "config: name must be a text");
        check(r#"{"name":"","limit":1.5}"#, "config: limit must be an integer");
        check(r#"{"name":"","hosts":[1]}"#, "config: hosts must be a list");
        check(r#"{"name":"","maybe":-1}"#, "config: maybe must be an integer from 0 of 32 bits");
        check(r#"{"name":"","limits":1}"#, "config: there is no setting limits: there are name, limit, part, on, hosts, map, maybe");
    }
}
