/**
 * One JSON value inside of a text: for a filter's configuration, and for arrays and objects from Message.get.
 *
 * It walks over what the host wrote and does not check; a text of the sender's is checked by Message.setJSON first. Depth
 * costs no stack.
 */
export class Json {
  /** The value as it stands in the text. */
  readonly text: string;

  /** The first value of text. */
  constructor(text: string) {
    const from = skipSpace(text, 0);
    this.text = text.substring(from, end(text, from));
  }

  get isNull(): bool {
    return this.text == "null";
  }

  get isBool(): bool {
    return this.text == "true" || this.text == "false";
  }

  /** Whether it is a number without fraction and exponent that fits into 64 bits. */
  get isInt(): bool {
    return isInt(this.text);
  }

  get isNumber(): bool {
    const c = this.text.length > 0 ? this.text.charCodeAt(0) : 0;
    return c == 0x2d || c >= 0x30 && c <= 0x39;
  }

  get isString(): bool {
    return this.text.startsWith('"');
  }

  get isArray(): bool {
    return this.text.startsWith("[");
  }

  get isObject(): bool {
    return this.text.startsWith("{");
  }

  get bool(): bool {
    return this.text == "true";
  }

  /** The integer; 0 when it is none. */
  get int(): i64 {
    return this.isInt ? I64.parseInt(this.text) : 0;
  }

  /** The number; 0 when it is none. */
  get float(): f64 {
    return this.isNumber ? parseFloat(this.text) : 0;
  }

  /** A string's text, escapes resolved; "" when it is none. */
  get string(): string {
    const t = this.text;
    if (!this.isString || t.length < 2) return "";
    let at = t.indexOf("\\");
    if (at < 0) return t.substring(1, t.length - 1);
    let out = "", from = 1;
    const last = t.length - 1;
    while (at >= 0 && at < last) {
      out += t.substring(from, at);
      const c = t.charCodeAt(at + 1);
      from = at + 2;
      switch (c) {
        case 0x62: out += "\b"; break;
        case 0x66: out += "\f"; break;
        case 0x6e: out += "\n"; break;
        case 0x72: out += "\r"; break;
        case 0x74: out += "\t"; break;
        case 0x75: // a pair of surrogates is two of these, as in UTF-16
          out += String.fromCharCode(<i32>parseInt(t.substring(from, from + 4), 16));
          from += 4;
          break;
        default: out += String.fromCharCode(c);
      }
      at = t.indexOf("\\", from);
    }
    return out + t.substring(from, last);
  }

  /** An array's elements; of anything else there are none. */
  get elements(): Json[] {
    const all: Json[] = [];
    if (!this.isArray) return all;
    for (let at = next(this.text, 1); at >= 0;) {
      const to = end(this.text, at);
      all.push(new Json(this.text.substring(at, to)));
      at = next(this.text, to);
    }
    return all;
  }

  /** An object's members, in order; of anything else there are none. Of a name that is there twice the last counts. */
  get members(): Map<string, Json> {
    const all = new Map<string, Json>();
    if (!this.isObject) return all;
    for (let at = next(this.text, 1); at >= 0;) {
      let to = end(this.text, at);
      const name = new Json(this.text.substring(at, to)).string;
      at = next(this.text, to);
      if (at < 0) break;
      to = end(this.text, at);
      all.set(name, new Json(this.text.substring(at, to)));
      at = next(this.text, to);
    }
    return all;
  }
}

function isSpace(c: i32): bool {
  return c == 0x20 || c == 0x09 || c == 0x0a || c == 0x0d;
}

function skipSpace(text: string, at: i32): i32 {
  while (at < text.length && isSpace(text.charCodeAt(at))) at++;
  return at;
}

/** Where the next value of an array or object begins, -1 at its end. */
function next(text: string, at: i32): i32 {
  while (at < text.length) {
    const c = text.charCodeAt(at);
    if (c == 0x5d || c == 0x7d) return -1;
    if (!isSpace(c) && c != 0x2c && c != 0x3a) return at;
    at++;
  }
  return -1;
}

/** Where the value ends that begins at. */
function end(text: string, at: i32): i32 {
  const n = text.length;
  let depth = 0;
  while (at < n) {
    const c = text.charCodeAt(at);
    if (c == 0x22) {
      for (at++; at < n && text.charCodeAt(at) != 0x22; at++) {
        if (text.charCodeAt(at) == 0x5c) at++;
      }
      at = min(at + 1, n);
    } else if (c == 0x7b || c == 0x5b) {
      depth++;
      at++;
      continue;
    } else if (c == 0x7d || c == 0x5d) {
      if (depth == 0) return at;
      depth--;
      at++;
    } else if (c == 0x2c || c == 0x3a || isSpace(c)) {
      if (depth == 0) return at;
      at++;
      continue;
    } else {
      while (at < n && !stops(text.charCodeAt(at))) at++;
    }
    if (depth == 0) return at;
  }
  return n;
}

function stops(c: i32): bool {
  return c == 0x2c || c == 0x3a || c == 0x5d || c == 0x7d || isSpace(c);
}

function isInt(t: string): bool {
  const minus = t.startsWith("-");
  const most: u64 = minus ? <u64>1 << 63 : <u64>i64.MAX_VALUE;
  let v: u64 = 0, i: i32 = minus ? 1 : 0;
  if (i == t.length) return false;
  for (; i < t.length; i++) {
    const d = <u64>(t.charCodeAt(i) - 0x30);
    if (d > 9 || v > (most - d) / 10) return false;
    v = v * 10 + d;
  }
  return true;
}
