import { Code } from "./code";
import { emit } from "./host";

/**
 * Writes record JSON, for emit and Message.setRecord:
 *
 *     new Record().text("message", "second half").int("part", 2).emit();
 *
 * Of a key that is given twice the last counts.
 */
export class Record {
  private body: string = "";

  text(key: string, value: string): this {
    return this.json(key, quote(value));
  }

  int(key: string, value: i64): this {
    return this.json(key, value.toString());
  }

  /** A float; one that is not finite makes the record invalid. */
  float(key: string, value: f64): this {
    return this.json(key, value.toString());
  }

  bool(key: string, value: bool): this {
    return this.json(key, value ? "true" : "false");
  }

  /** Any JSON value, also one that Message.get gave for an array or an object. */
  json(key: string, value: string): this {
    this.body += (this.body.length > 0 ? "," : "") + quote(key) + ":" + value;
    return this;
  }

  /** The record as JSON. */
  toString(): string {
    return "{" + this.body + "}";
  }

  /** Emits it: see emit. */
  emit(): Code {
    return emit(this.toString());
  }
}

/** Text as a JSON string, to build arrays and objects for Message.setJSON. */
export function quote(text: string): string {
  let out = '"', from = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c >= 0x20 && c != 0x22 && c != 0x5c) continue;
    out += text.substring(from, i);
    out += c < 0x20 ? "\\u00" + (c < 16 ? "0" : "1") + (c & 15).toString(16) : "\\" + String.fromCharCode(c);
    from = i + 1;
  }
  return out + text.substring(from) + '"';
}
