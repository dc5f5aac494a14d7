import * as abi from "./abi";
import { answer, Code } from "./code";
import { Bytes, name, scratch, value } from "./text";

/** The level of a line in weir's own log. */
export enum Level {
  Trace = 0,
  Debug = 1,
  Info = 2,
  Warn = 3,
  Error = 4,
}

/** Writes a line to weir's own log, with the filter's name. Over 100 lines a second are left out and counted. */
export function log(level: Level, line: string): void {
  value.of(line);
  abi.host_log(level, value.ptr, value.len);
}

/** Whether lines of this level are written at all. */
export function logEnabled(level: Level): bool {
  return abi.log_enabled(level) != 0;
}

/** The filter's config: as JSON, {} when there is none. onStart hands it over read: see Settings. */
export function configText(): string {
  let to = scratch;
  let n = abi.config_get(to.ptr, to.cap);
  if (n > to.cap) {
    to = new Bytes(n);
    n = abi.config_get(to.ptr, to.cap);
  }
  return n < 0 ? "{}" : to.text(n);
}

/**
 * One more message behind this one, from record JSON (filters/ABI.md); see Record, which writes it.
 *
 * What it leaves out is inherited from the message as it stands now; in onTick and onClose nothing is, and a missing
 * timestamp is the time, a missing hostname weir's, a missing app_name the filter's name. It goes on at the next filter, also
 * when the message itself is dropped. When the call fails or rejects, it is gone. Invalid: some part of it is wrong, and
 * nothing was emitted. TooMany: over 1000 in a call, or no memory is free.
 */
export function emit(record: string): Code {
  value.of(record);
  return answer(abi.host_emit(value.ptr, value.len));
}

/** The time in ns since 1970. */
export function now(): i64 {
  return abi.time_now();
}

/** 64 random bits. Math.random works too. */
export function random(): u64 {
  return <u64>abi.host_random();
}

/**
 * A store of keys and values that all instances of a filter share, and that lasts until weir ends: at most 10 000 keys and
 * 16 MiB a filter. It is not undone when a call fails.
 */
export namespace kv {
  /** The value of key; a number that add made is decimal. null when there is none. */
  export function get(key: string): string | null {
    name.of(key);
    let to = scratch;
    let n = abi.kv_get(name.ptr, name.len, to.ptr, to.cap);
    while (n > to.cap) { // another instance may have made it longer meanwhile
      to = new Bytes(n);
      n = abi.kv_get(name.ptr, name.len, to.ptr, to.cap);
    }
    return answer(n) == Code.Ok ? to.text(n) : null;
  }

  /** Sets key for ttl ms; 0: without an end. Setting it again renews it. TooMany: the filter's keys or bytes are used up. */
  export function set(key: string, text: string, ttl: i64 = 0): Code {
    name.of(key);
    value.of(text);
    return answer(abi.kv_set(name.ptr, name.len, value.ptr, value.len, ttl));
  }

  /** Removes key. Absent when there is none. */
  export function del(key: string): Code {
    name.of(key);
    return answer(abi.kv_del(name.ptr, name.len));
  }

  /**
   * Adds to the number at key, at once for all instances, and returns the sum. What is absent starts at 0; the time that key
   * has left stays as it is; beyond 64 bits it wraps. 0 and last() WrongType: the value is no number.
   */
  export function add(key: string, delta: i64): i64 {
    name.of(key);
    return answer(abi.kv_add(name.ptr, name.len, delta, sum)) == Code.Ok ? load<i64>(sum) : 0;
  }
}

const sum = memory.data(8);

/**
 * The filter's own metrics, weir_filter_user_<name>{filter="…"}. A name is [a-zA-Z_][a-zA-Z0-9_]*; others, and NaN, are
 * ignored and logged once. At most 1000 names a filter.
 */
export namespace metric {
  /** Adds to a metric, which starts at 0. */
  export function add(metric: string, delta: f64): void {
    name.of(metric);
    abi.metric_add(name.ptr, name.len, delta);
  }

  export function set(metric: string, v: f64): void {
    name.of(metric);
    abi.metric_set(name.ptr, name.len, v);
  }
}
