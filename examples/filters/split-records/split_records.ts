// split-records makes several messages of one that holds several records: lines, the elements of a JSON array, or what a
// separator of one's own divides. README.md beside this file has the settings.
import { Code, Json, Message, Record, Settings, Verdict, codeText, fail, handle, last, onStart, reject } from "../../../filters/sdk/assemblyscript";
export * from "../../../filters/sdk/assemblyscript/exports";

class Split {
  by: string; // the separator
  empty: bool; // keep empty records
  number: string; // the field that counts the records from 1; "": none
  array: bool; // by: json

  constructor(s: Settings) {
    this.by = s.text("by", "\n");
    this.empty = s.bool("empty");
    this.number = s.text("number");
    this.array = this.by == "json";
    if (this.by.length == 0) s.refuse("config: by must be a text that divides, or json");
  }
}

let split!: Split;

/** What weir takes of one call, and the message itself. */
const most = 1001;

/** Where an array is for a moment. */
const field = "split-records: the array in hand";

onStart((s) => {
  split = new Split(s);
});

handle((m: Message): Verdict => {
  const text = m.get("message");
  if (text === null) return last() == Code.Absent ? Verdict.Keep : fail("split-records: the text cannot be read");
  const records = split.array ? elements(m, text) : parts(text);
  if (records.length < 2) return Verdict.Keep;
  if (records.length > most) return reject("split-records: more than 1001 records in one message");
  // The message becomes the first record; the others have all that it has but the text.
  for (let i = 0; i < records.length; i++) {
    const code = i == 0 ? setFirst(m, records[0]) : emitNext(records[i], i + 1);
    if (code != Code.Ok) return fail("split-records: record " + (i + 1).toString() + ": " + codeText(code));
  }
  return Verdict.Keep;
});

function setFirst(m: Message, text: string): Code {
  const code = m.set("message", text);
  if (code != Code.Ok || split.number.length == 0) return code;
  return m.setInt(split.number, 1);
}

function emitNext(text: string, n: i32): Code {
  const r = new Record().text("message", text);
  if (split.number.length > 0) r.int(split.number, n);
  return r.emit();
}

function parts(text: string): string[] {
  const all: string[] = [];
  if (!text.includes(split.by)) return all; // nothing to do, and nothing made
  const found = text.split(split.by);
  for (let i = 0; i < found.length; i++) {
    const one = split.by == "\n" && found[i].endsWith("\r") ? found[i].substring(0, found[i].length - 1) : found[i];
    if (split.empty || one.length > 0) all.push(one);
  }
  return all;
}

/** The elements of a JSON array as texts: strings without their quotes, anything else as JSON. */
function elements(m: Message, text: string): string[] {
  const all: string[] = [];
  if (!text.trimStart().startsWith("[")) return all;
  // The host checks JSON, and gives it back compact; the field is not kept.
  if (m.setJSON(field, text) != Code.Ok) return all;
  const json = m.get(field);
  if (m.unset(field) != Code.Ok || json === null) return all;
  const values = new Json(json).elements;
  for (let i = 0; i < values.length; i++) {
    const one = values[i].isString ? values[i].string : values[i].text;
    if (split.empty || one.length > 0) all.push(one);
  }
  return all;
}
