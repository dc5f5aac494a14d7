/** What a call to the host came to. */
export enum Code {
  Ok = 0,
  /** There is no such field, parameter, element, key or destination. */
  Absent = -1,
  /** The value is of another type. */
  WrongType = -2,
  /** The key, value or text is over its limit. */
  TooLong = -3,
  /** The key is read-only. */
  NotPermitted = -4,
  /** The key or the value is none. */
  Invalid = -5,
  /** A quota is used up (1000 fields, 1000 parameters, 1000 emitted messages, 10 000 kv keys, …), or no memory is free. */
  TooMany = -6,
  /** Not available in this function, such as a message in onStart. */
  NotHere = -7,
}

let code: Code = Code.Ok;

/** What the last call came to that returns a value: Message.int, kv.add and the like. Those that return a Code count too. */
export function last(): Code {
  return code;
}

/** Keeps the host's answer for last, and returns it. */
export function answer(n: i32): Code {
  code = n < 0 ? <Code>n : Code.Ok;
  return code;
}

/** A code in words, for fail and log. */
export function codeText(c: Code): string {
  switch (c) {
    case Code.Ok: return "ok";
    case Code.Absent: return "absent";
    case Code.WrongType: return "wrong type";
    case Code.TooLong: return "too long";
    case Code.NotPermitted: return "not permitted";
    case Code.Invalid: return "invalid";
    case Code.TooMany: return "too many";
    case Code.NotHere: return "not available here";
    default: return "unknown error";
  }
}
