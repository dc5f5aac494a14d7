import * as abi from "./abi";
import { configText } from "./host";
import { Message } from "./message";
import { Settings } from "./settings";
import { value } from "./text";

/** What happens to a message. */
export enum Verdict {
  /** It goes on, with the edits made. */
  Keep = 0,
  /** It is gone, counted as dropped. What was emitted behind it goes on. */
  Drop = 1,
  /** It goes on with the edits made, past the rest of this route's filters. */
  Skip = 2,
  /** It goes to the dead letters as it came to this filter, with the text given to fail or reject. */
  Reject = 3,
  /** What this call edited, emitted and routed is undone, and the filter's on_error decides. */
  Failed = -1,
}

/** Gives the reason for a failure, for `return fail("…")`. The last one counts; at most 4 KiB are kept. */
export function fail(reason: string): Verdict {
  value.of(reason);
  abi.host_fail(value.ptr, value.len);
  return Verdict.Failed;
}

/** Gives the reason for the dead letter, for `return reject("…")`. */
export function reject(reason: string): Verdict {
  fail(reason);
  return Verdict.Reject;
}

/**
 * Registers what is called for each message. Call it at the top level. What throws, or reads past an array's end, is a failed
 * message with its text and place, and costs the instance.
 */
export function handle(f: (m: Message) => Verdict): void {
  onMessage = f;
}

/**
 * Registers what is called once in each instance, before its first message, with the filter's config:. There is no message
 * yet. A setting that is missing, of another type, or that was not asked for refuses the module; so does Settings.refuse.
 */
export function onStart(f: (settings: Settings) => void): void {
  start = f;
}

/** Registers what is called about once a second, and once more before onClose. There is no message; emit works. */
export function onTick(f: () => void): void {
  tick = f;
}

/** Registers what is called before the instance goes; not after a fault. */
export function onClose(f: () => void): void {
  close = f;
}

let onMessage: ((m: Message) => Verdict) | null = null;
let start: ((settings: Settings) => void) | null = null;
let tick: (() => void) | null = null;
let close: (() => void) | null = null;

const message = new Message();

// What exports.ts exports.

export function weir_init(): i32 {
  if (onMessage === null) {
    fail("the filter has no handler: call handle at the top level");
    return 1;
  }
  const f = start;
  if (f === null) return 0;
  const settings = new Settings(configText());
  f(settings);
  const why = settings.wrong;
  if (why === null) return 0;
  fail(why);
  return 1;
}

export function weir_process(): i32 {
  return onMessage!(message);
}

export function weir_tick(): void {
  const f = tick;
  if (f !== null) f();
}

export function weir_close(): void {
  const f = close;
  if (f !== null) f();
}
