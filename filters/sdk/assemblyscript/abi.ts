// The host's functions, as filters/ABI.md has them. A text is an address and a length. Only what is called is imported.

// @ts-ignore: decorator
@external("weir_v1", "field_get")
export declare function field_get(key: usize, kn: i32, buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_type")
export declare function field_type(key: usize, kn: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_get_i64")
export declare function field_get_i64(key: usize, kn: i32, out: usize): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_get_f64")
export declare function field_get_f64(key: usize, kn: i32, out: usize): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_set")
export declare function field_set(key: usize, kn: i32, val: usize, vn: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_set_json")
export declare function field_set_json(key: usize, kn: i32, val: usize, vn: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_set_i64")
export declare function field_set_i64(key: usize, kn: i32, val: i64): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_set_f64")
export declare function field_set_f64(key: usize, kn: i32, val: f64): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_unset")
export declare function field_unset(key: usize, kn: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_count")
export declare function field_count(): i32;
// @ts-ignore: decorator
@external("weir_v1", "field_name")
export declare function field_name(i: i32, buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "sd_get")
export declare function sd_get(id: usize, idn: i32, param: usize, pn: i32, buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "sd_set")
export declare function sd_set(id: usize, idn: i32, param: usize, pn: i32, val: usize, vn: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "sd_unset")
export declare function sd_unset(id: usize, idn: i32, param: usize, pn: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "record_get")
export declare function record_get(buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "record_set")
export declare function record_set(ptr: usize, n: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "emit")
export declare function host_emit(ptr: usize, n: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "route")
export declare function host_route(name: usize, nn: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "config_get")
export declare function config_get(buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "log")
export declare function host_log(level: i32, ptr: usize, n: i32): void;
// @ts-ignore: decorator
@external("weir_v1", "log_enabled")
export declare function log_enabled(level: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "metric_add")
export declare function metric_add(name: usize, nn: i32, value: f64): void;
// @ts-ignore: decorator
@external("weir_v1", "metric_set")
export declare function metric_set(name: usize, nn: i32, value: f64): void;
// @ts-ignore: decorator
@external("weir_v1", "kv_get")
export declare function kv_get(key: usize, kn: i32, buf: usize, cap: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "kv_set")
export declare function kv_set(key: usize, kn: i32, val: usize, vn: i32, ttl_ms: i64): i32;
// @ts-ignore: decorator
@external("weir_v1", "kv_del")
export declare function kv_del(key: usize, kn: i32): i32;
// @ts-ignore: decorator
@external("weir_v1", "kv_add")
export declare function kv_add(key: usize, kn: i32, delta: i64, out: usize): i32;
// @ts-ignore: decorator
@external("weir_v1", "time_now")
export declare function time_now(): i64;
// @ts-ignore: decorator
@external("weir_v1", "random")
export declare function host_random(): i64;
// @ts-ignore: decorator
@external("weir_v1", "fail")
export declare function host_fail(ptr: usize, n: i32): void;
