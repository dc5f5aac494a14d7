import * as abi from "./abi";
import { answer, Code } from "./code";
import { Bytes, name, name2, scratch, value } from "./text";

/** The type of a value. */
export enum Type {
  Absent = 0,
  Null = 1,
  Bool = 2,
  Int = 3,
  Float = 4,
  String = 5,
  /** Text that is not UTF-8. */
  Bytes = 6,
  Array = 7,
  Object = 8,
}

// Where the host writes numbers.
const out = memory.data(8);

/**
 * The message in hand. It is valid during the handler's call only.
 *
 * Keys are literal: "a.b" is one name. The message's own are timestamp (ns since 1970), facility, severity, hostname,
 * app_name, proc_id, msg_id, message and, read-only, received_at, structured_data, raw, source, listener, peer. Every
 * other key is a field.
 *
 * Values of any length come whole. A byte that is not UTF-8 becomes a lone surrogate, U+DC80 to U+DCFF, and goes back as
 * that byte.
 */
export class Message {
  /**
   * The value of key as text: numbers in decimal (times in ns since 1970), "true" or "false", arrays and objects as compact
   * JSON, "null". null when there is none.
   */
  get(key: string): string | null {
    name.of(key);
    let to = scratch;
    let n = abi.field_get(name.ptr, name.len, to.ptr, to.cap);
    if (n > to.cap) {
      to = new Bytes(n);
      n = abi.field_get(name.ptr, name.len, to.ptr, to.cap);
    }
    return answer(n) == Code.Ok ? to.text(n) : null;
  }

  /** As get, as the bytes they are. */
  bytes(key: string): Uint8Array | null {
    name.of(key);
    let n = abi.field_get(name.ptr, name.len, scratch.ptr, scratch.cap);
    if (answer(n) != Code.Ok) return null;
    const b = new Uint8Array(n);
    if (n > scratch.cap) abi.field_get(name.ptr, name.len, b.dataStart, n);
    else memory.copy(b.dataStart, scratch.ptr, n);
    return b;
  }

  /** Whether key is there with exactly this text; numbers are compared as decimal text. It makes no string. */
  is(key: string, want: string): bool {
    name.of(key);
    value.of(want);
    const n = abi.field_get(name.ptr, name.len, scratch.ptr, scratch.cap);
    if (answer(n) != Code.Ok || n != value.len) return false;
    if (n > scratch.cap) return this.get(key) == want;
    return memory.compare(scratch.ptr, value.ptr, n) == 0;
  }

  /** The type of key's value. */
  type(key: string): Type {
    name.of(key);
    const n = abi.field_type(name.ptr, name.len);
    return answer(n) == Code.Ok ? <Type>n : Type.Absent;
  }

  /** An integer. Text is never parsed: of anything else it is otherwise, and last() is Absent or WrongType. */
  int(key: string, otherwise: i64 = 0): i64 {
    name.of(key);
    return answer(abi.field_get_i64(name.ptr, name.len, out)) == Code.Ok ? load<i64>(out) : otherwise;
  }

  /** A float, or an integer's value. Text is never parsed: of anything else it is otherwise, and last() tells. */
  float(key: string, otherwise: f64 = 0): f64 {
    name.of(key);
    return answer(abi.field_get_f64(name.ptr, name.len, out)) == Code.Ok ? load<f64>(out) : otherwise;
  }

  /**
   * Sets a text. Into the message's own timestamp, facility and severity it is parsed: decimal digits, RFC 3339, or a keyword
   * such as "warning"; Invalid when it is none.
   */
  set(key: string, text: string): Code {
    name.of(key);
    value.of(text);
    return answer(abi.field_set(name.ptr, name.len, value.ptr, value.len));
  }

  /** As set, with bytes, which need not be UTF-8. */
  setBytes(key: string, bytes: Uint8Array): Code {
    name.of(key);
    return answer(abi.field_set(name.ptr, name.len, bytes.dataStart, bytes.byteLength));
  }

  setInt(key: string, n: i64): Code {
    name.of(key);
    return answer(abi.field_set_i64(name.ptr, name.len, n));
  }

  /** Sets a float. NaN and the infinities are Invalid. */
  setFloat(key: string, f: f64): Code {
    name.of(key);
    return answer(abi.field_set_f64(name.ptr, name.len, f));
  }

  setBool(key: string, b: bool): Code {
    return this.setJSON(key, b ? "true" : "false");
  }

  /** Sets any JSON value. null makes one of the message's own keys absent. What is no JSON is Invalid. */
  setJSON(key: string, json: string): Code {
    name.of(key);
    value.of(json);
    return answer(abi.field_set_json(name.ptr, name.len, value.ptr, value.len));
  }

  /** Makes key absent. Absent when it was; NotPermitted for facility, severity and read-only keys. */
  unset(key: string): Code {
    name.of(key);
    return answer(abi.field_unset(name.ptr, name.len));
  }

  /** How many fields there are. The message's own keys are none. */
  get count(): i32 {
    const n = abi.field_count();
    answer(n);
    return max(n, 0);
  }

  /** The names of the fields, in order. */
  get fields(): string[] {
    const names: string[] = [];
    let n = abi.field_name(0, scratch.ptr, scratch.cap);
    for (let i = 1; n >= 0; i++) {
      names.push(scratch.text(n)); // a name has 4096 bytes at most
      n = abi.field_name(i, scratch.ptr, scratch.cap);
    }
    return names;
  }

  /** A parameter of the structured data, the first of repeated ones. null when there is none. */
  param(id: string, param: string): string | null {
    name.of(id);
    name2.of(param);
    let to = scratch;
    let n = abi.sd_get(name.ptr, name.len, name2.ptr, name2.len, to.ptr, to.cap);
    if (n > to.cap) {
      to = new Bytes(n);
      n = abi.sd_get(name.ptr, name.len, name2.ptr, name2.len, to.ptr, to.cap);
    }
    return answer(n) == Code.Ok ? to.text(n) : null;
  }

  /** Sets a parameter, and makes its element when there is none. Invalid for names that RFC 5424 forbids. */
  setParam(id: string, param: string, text: string): Code {
    name.of(id);
    name2.of(param);
    value.of(text);
    return answer(abi.sd_set(name.ptr, name.len, name2.ptr, name2.len, value.ptr, value.len));
  }

  /** Removes a parameter, all of that name. Absent when there is none. */
  unsetParam(id: string, param: string): Code {
    name.of(id);
    name2.of(param);
    return answer(abi.sd_unset(name.ptr, name.len, name2.ptr, name2.len));
  }

  /** Removes a whole element of the structured data. Absent when there is none. */
  unsetElement(id: string): Code {
    name.of(id);
    return answer(abi.sd_unset(name.ptr, name.len, name.ptr, 0));
  }

  /** The whole message as record JSON (filters/ABI.md). */
  get record(): string {
    let to = scratch;
    let n = abi.record_get(to.ptr, to.cap);
    if (n > to.cap) {
      to = new Bytes(n);
      n = abi.record_get(to.ptr, to.cap);
    }
    return answer(n) == Code.Ok ? to.text(n) : "";
  }

  /**
   * Replaces the whole message by record JSON; what it leaves out becomes absent, except received_at, raw, source, listener
   * and peer, which stay. One bad part refuses all of it: Invalid.
   */
  setRecord(json: string): Code {
    value.of(json);
    return answer(abi.record_set(value.ptr, value.len));
  }

  /**
   * Sends the message only to this destination of its route, and to those named before. Absent for a name that the route does
   * not have. It is undone when the call fails or rejects.
   */
  route(destination: string): Code {
    name.of(destination);
    return answer(abi.host_route(name.ptr, name.len));
  }
}
