// weir: write filters for the log router weir in AssemblyScript.
//
//     import { Message, Verdict, fail, handle, Code } from "weir";
//     export * from "weir/exports";
//
//     handle((m: Message): Verdict => {
//       if (m.is("app_name", "healthd")) return Verdict.Drop;
//       const text = m.get("message");
//       if (text !== null && text.startsWith("audit:")) {
//         if (m.set("kind", "audit") != Code.Ok) return fail("kind cannot be set");
//       }
//       return Verdict.Keep;
//     });
//
// Built with
//
//     npx asc filter.ts -O3 --runtime incremental -o filter.wasm
//
// An instance serves one message at a time. weir runs one a core unless the configuration says instances: one, and replaces
// one that failed hard, so global variables are caches and no truth; kv is for what must be shared or last.
//
// The contract behind this package is filters/ABI.md.
export { Code, codeText, last } from "./code";
export { Verdict, fail, handle, onClose, onStart, onTick, reject } from "./filter";
export { Level, configText, emit, kv, log, logEnabled, metric, now, random } from "./host";
export { Json } from "./json";
export { Message, Type } from "./message";
export { Record, quote } from "./record";
export { Settings } from "./settings";
