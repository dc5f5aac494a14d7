//! The host's functions, as filters/ABI.md has them. A text is an address and a length.

macro_rules! imports {
    ($(fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)+) => {
        #[cfg(target_arch = "wasm32")]
        #[link(wasm_import_module = "weir_v1")]
        extern "C" {
            $(pub fn $name($($arg: $type),*) $(-> $result)?;)+
        }

        // So that a filter's own functions can be tested with `cargo test` where weir is not.
        $(#[cfg(not(target_arch = "wasm32"))]
        pub unsafe fn $name($(_: $type),*) $(-> $result)? {
            panic!(concat!(stringify!($name), " works inside of weir only"))
        })+
    };
}

imports! {
    fn field_get(key: *const u8, kn: usize, buf: *mut u8, cap: usize) -> i32;
    fn field_type(key: *const u8, kn: usize) -> i32;
    fn field_get_i64(key: *const u8, kn: usize, out: *mut i64) -> i32;
    fn field_get_f64(key: *const u8, kn: usize, out: *mut f64) -> i32;
    fn field_set(key: *const u8, kn: usize, val: *const u8, vn: usize) -> i32;
    fn field_set_json(key: *const u8, kn: usize, val: *const u8, vn: usize) -> i32;
    fn field_set_i64(key: *const u8, kn: usize, val: i64) -> i32;
    fn field_set_f64(key: *const u8, kn: usize, val: f64) -> i32;
    fn field_unset(key: *const u8, kn: usize) -> i32;
    fn field_count() -> i32;
    fn field_name(i: i32, buf: *mut u8, cap: usize) -> i32;
    fn sd_get(id: *const u8, idn: usize, param: *const u8, pn: usize, buf: *mut u8, cap: usize) -> i32;
    fn sd_set(id: *const u8, idn: usize, param: *const u8, pn: usize, val: *const u8, vn: usize) -> i32;
    fn sd_unset(id: *const u8, idn: usize, param: *const u8, pn: usize) -> i32;
    fn record_get(buf: *mut u8, cap: usize) -> i32;
    fn record_set(ptr: *const u8, n: usize) -> i32;
    fn emit(ptr: *const u8, n: usize) -> i32;
    fn route(name: *const u8, nn: usize) -> i32;
    fn config_get(buf: *mut u8, cap: usize) -> i32;
    fn log(level: i32, ptr: *const u8, n: usize);
    fn log_enabled(level: i32) -> i32;
    fn metric_add(name: *const u8, nn: usize, value: f64);
    fn metric_set(name: *const u8, nn: usize, value: f64);
    fn kv_get(key: *const u8, kn: usize, buf: *mut u8, cap: usize) -> i32;
    fn kv_set(key: *const u8, kn: usize, val: *const u8, vn: usize, ttl_ms: i64) -> i32;
    fn kv_del(key: *const u8, kn: usize) -> i32;
    fn kv_add(key: *const u8, kn: usize, delta: i64, out: *mut i64) -> i32;
    fn time_now() -> i64;
    fn random() -> i64;
    fn fail(ptr: *const u8, n: usize);
}
