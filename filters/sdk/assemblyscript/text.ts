// Texts between AssemblyScript, which has UTF-16, and the host, which has bytes.
//
// Senders do not always write UTF-8. A byte that is not becomes a lone surrogate, U+DC80 to U+DCFF, and one of these
// becomes that byte again: a text that a filter takes and gives back keeps every byte. Other lone surrogates become U+FFFD.

/** Bytes for the host. They stay until the same Bytes are filled again. */
export class Bytes {
  private buf: ArrayBuffer;
  len: i32 = 0;

  constructor(size: i32) {
    this.buf = new ArrayBuffer(size);
  }

  @inline
  get ptr(): usize {
    return changetype<usize>(this.buf);
  }

  get cap(): i32 {
    return this.buf.byteLength;
  }

  /** Makes room for n bytes; what was there is lost. */
  room(n: i32): void {
    if (n > this.buf.byteLength) this.buf = new ArrayBuffer(n);
  }

  /** Fills with a text. */
  of(text: string): this {
    const n = text.length;
    if (3 * n > this.cap) this.room(size(text)); // a unit is three bytes at most, a pair of units four
    const from = changetype<usize>(text), start = this.ptr;
    let to = start;
    for (let i = 0; i < n; i++) {
      let c = <u32>load<u16>(from + (<usize>i << 1));
      if (c < 0x80) {
        store<u8>(to++, c);
        continue;
      }
      if (c >= 0xdc80 && c <= 0xdcff) {
        store<u8>(to++, c - 0xdc00);
        continue;
      }
      if (c < 0x800) {
        store<u8>(to++, 0xc0 | c >> 6);
        store<u8>(to++, 0x80 | c & 63);
        continue;
      }
      if (c >= 0xd800 && c < 0xdc00 && i + 1 < n) {
        const low = <u32>load<u16>(from + (<usize>(i + 1) << 1));
        if (low >= 0xdc00 && low < 0xe000) {
          i++;
          c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
          store<u8>(to++, 0xf0 | c >> 18);
          store<u8>(to++, 0x80 | c >> 12 & 63);
          store<u8>(to++, 0x80 | c >> 6 & 63);
          store<u8>(to++, 0x80 | c & 63);
          continue;
        }
      }
      if (c >= 0xd800 && c < 0xe000) c = 0xfffd;
      store<u8>(to++, 0xe0 | c >> 12);
      store<u8>(to++, 0x80 | c >> 6 & 63);
      store<u8>(to++, 0x80 | c & 63);
    }
    this.len = <i32>(to - start);
    return this;
  }

  /** The first n bytes as text. */
  text(n: i32): string {
    if (n == 0) return "";
    const from = this.ptr;
    const units = changetype<string>(__new(<usize>n << 1, idof<string>())); // no more units than bytes
    let to = changetype<usize>(units), i: usize = 0;
    const end = <usize>n;
    while (i < end) {
      const c = <u32>load<u8>(from + i);
      if (c < 0x80) {
        store<u16>(to, c);
        to += 2;
        i++;
        continue;
      }
      const size = sequence(from + i, end - i);
      if (size == 2) {
        store<u16>(to, (c & 31) << 6 | tail(from + i + 1));
      } else if (size == 3) {
        store<u16>(to, (c & 15) << 12 | tail(from + i + 1) << 6 | tail(from + i + 2));
      } else if (size == 4) {
        const r = ((c & 7) << 18 | tail(from + i + 1) << 12 | tail(from + i + 2) << 6 | tail(from + i + 3)) - 0x10000;
        store<u16>(to, 0xd800 + (r >> 10));
        to += 2;
        store<u16>(to, 0xdc00 + (r & 0x3ff));
      } else {
        store<u16>(to, 0xdc00 + c);
        i++;
        to += 2;
        continue;
      }
      i += size;
      to += 2;
    }
    const length = to - changetype<usize>(units);
    if (length == <usize>n << 1) return units;
    return changetype<string>(__renew(changetype<usize>(units), length));
  }
}

/** How many bytes a text has at most: a pair of units is counted as six. */
function size(text: string): i32 {
  let n = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    n += c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
  }
  return n;
}

// @ts-ignore: decorator
@inline
function tail(at: usize): u32 {
  return <u32>load<u8>(at) & 63;
}

/** The length of the UTF-8 sequence of several bytes at p, of which n are there; 0 when there is none. */
function sequence(p: usize, n: usize): usize {
  const c = load<u8>(p);
  const size: usize = c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
  if (size == 0 || size > n) return 0;
  for (let i: usize = 1; i < size; i++) {
    if ((load<u8>(p + i) & 0xc0) != 0x80) return 0;
  }
  const second = load<u8>(p + 1);
  if (c == 0xe0 && second < 0xa0 || c == 0xed && second >= 0xa0) return 0; // too long a form, surrogates
  if (c == 0xf0 && second < 0x90 || c == 0xf4 && second >= 0x90) return 0; // too long a form, beyond U+10FFFF
  return size;
}

/** Where values are read first: one host call for a get. A longer one gets a buffer of its own, for that call. */
export const scratch = new Bytes(64 << 10);

/** For keys and other names, of which a call has two at most. */
export const name = new Bytes(256);
export const name2 = new Bytes(256);

/** For values that go to the host. */
export const value = new Bytes(256);

