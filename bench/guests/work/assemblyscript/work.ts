// work is ../c/work.c in AssemblyScript.
import { Code, Message, Verdict, fail, handle } from "../../../../filters/sdk/assemblyscript";
export * from "../../../../filters/sdk/assemblyscript/exports";

handle((m: Message): Verdict => {
  const text = m.bytes("message");
  if (text === null) return fail("no message");
  const app = m.bytes("app_name");
  if (app === null) return fail("no app_name");
  const kind = new Uint8Array(app.length + 10);
  kind.set(app!);
  let n = app.length;
  kind[n++] = 0x2f;
  for (let i = 0; i < text.length && i < 8 && text[i] != 0x20; i++) kind[n++] = text[i];
  if (text.length >= 1000) {
    let h: u32 = 2166136261;
    for (let round = 0; round < 16; round++) {
      for (let i = 0; i < text.length; i++) h = (h ^ unchecked(text[i])) * 16777619;
    }
    kind[n++] = <u8>(0x61 + (h % 26));
  }
  if (m.setBytes("kind", kind.subarray(0, n)) != Code.Ok) return fail("kind cannot be set");
  return Verdict.Keep;
});
