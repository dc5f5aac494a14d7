// sample keeps one of so many messages, by a key: all messages with the same value are kept, or none.
// README.md beside this file has the settings.
import { Code, Message, Settings, Verdict, fail, handle, onStart, random } from "../../../filters/sdk/assemblyscript";
export * from "../../../filters/sdk/assemblyscript/exports";

class Sample {
  rate: u64; // one of so many is kept
  key: string; // "": each message by chance
  always: i64; // this severity and more severe ones are kept
  to: string; // the field that tells the rate; "": none

  constructor(s: Settings) {
    const rate = s.require("rate").int("rate", 1);
    this.rate = <u64>rate;
    this.key = s.text("key");
    this.always = s.int("always", 3);
    this.to = s.text("to", "sample_rate");
    if (rate < 1 || rate > 1000000000) s.refuse("config: rate must be 1 to 1000000000");
    if (this.always < -1 || this.always > 7) s.refuse("config: always must be -1 to 7");
  }
}

let sample!: Sample;

onStart((s) => {
  sample = new Sample(s);
});

handle((m: Message): Verdict => {
  if (m.int("severity", 8) <= sample.always) return Verdict.Keep;
  if (chance(m) % sample.rate != 0) return Verdict.Drop;
  if (sample.to.length > 0 && m.setInt(sample.to, <i64>sample.rate) != Code.Ok) return fail("sample: the field " + sample.to + " cannot be set");
  return Verdict.Keep;
});

/** A number that is the same for equal values of the key, everywhere and always, and random where there is no value. */
function chance(m: Message): u64 {
  if (sample.key.length == 0) return random();
  const value = m.bytes(sample.key);
  if (value === null || value.length == 0) return random();
  let h: u64 = 0xcbf29ce484222325; // FNV-1a
  for (let i = 0; i < value.length; i++) h = (h ^ unchecked(value[i])) * 0x100000001b3;
  h ^= h >> 33; // the last step of MurmurHash3: every bit counts in the remainder
  h *= 0xff51afd7ed558ccd;
  h ^= h >> 33;
  h *= 0xc4ceb9fe1a85ec53;
  return h ^ (h >> 33);
}
