// The script guest on the AssemblyScript SDK: it does what a message lists in the field do, and puts what came of each step
// into the field did.
// ../README.md has the steps; ../script_c does the same on the C SDK.
import {
  Code, Json, Level, Message, Record, Verdict, codeText, configText, emit, fail, handle, kv, last, log, logEnabled, metric, now,
  onClose, onStart, onTick, quote, random,
} from "../../sdk/assemblyscript";
export * from "../../sdk/assemblyscript/exports";

let did: string[] = []; // what came of the steps
let reason = ""; // what the last step "fail" said

const none = new Message();

function configured(list: string): void {
  const all = new Json(configText()).members;
  if (all.has(list)) run(none, all.get(list));
}

function run(m: Message, steps: Json): i32 {
  const all = steps.elements;
  for (let i = 0; i < all.length; i++) {
    const a = all[i].elements.map<string>((word: Json): string => word.string);
    const n = min(a.length, 3);
    const head = a.slice(0, n).join(" ");
    while (a.length < 4) a.push("");
    if (a[0] == "verdict") return <i32>number(a[1]);
    if (a[0] == "trap") throw new Error("as the script says");
    if (a[0] == "fail") {
      reason = a[1];
      fail(reason);
    } else if (a[0] == "log") {
      log(<i32>number(a[1]), a[2]);
    } else if (a[0] == "tell") {
      log(Level.Info, did[did.length - 1]);
    } else {
      did.push(head + " = " + result(m, a));
    }
  }
  return Verdict.Keep;
}

function number(text: string): i64 {
  return new Json(text).int;
}

function thousandths(text: string): f64 {
  return text == "nan" ? NaN : text == "inf" ? Infinity : <f64>number(text) / 1000;
}

/** The value of a call that answers with one, or its error. */
function or(value: string): string {
  return last() == Code.Ok ? value : codeText(last());
}

function textOr(value: string | null): string {
  return value === null ? codeText(last()) : value;
}

function repeat(c: string, n: string): string {
  return c.repeat(<i32>number(n));
}

const types = ["absent", "null", "bool", "int", "float", "string", "bytes", "array", "object"];

function result(m: Message, a: string[]): string {
  const op = a[0], key = a[1];
  if (op == "get") return textOr(m.get(key));
  if (op == "equals") return m.is(key, a[2]).toString();
  if (op == "size") {
    const b = m.bytes(key);
    return b === null ? codeText(last()) : b.length.toString();
  }
  if (op == "type") return types[m.type(key)];
  if (op == "get_i64") return or(m.int(key).toString());
  if (op == "get_f64") return or((<i64>(m.float(key) * 1000)).toString() + "e-3");
  if (op == "set") return codeText(m.set(key, a[2]));
  if (op == "set_bytes") { // the same both ways: as bytes, and as a text
    const text = a[2].replaceAll("~", "\udcff");
    const code = m.set(key, text);
    const b = m.bytes(key);
    if (b === null || m.get(key) != text) return "not what was set";
    m.setBytes(key, b);
    return m.get(key) == text ? codeText(code) : "not what was set as bytes";
  }
  if (op == "copy") {
    const text = m.get(key);
    return text === null ? codeText(last()) : codeText(m.set(a[2], text));
  }
  if (op == "set_json") return codeText(m.setJSON(key, a[2]));
  if (op == "set_i64") return codeText(m.setInt(key, number(a[2])));
  if (op == "set_f64") return codeText(m.setFloat(key, thousandths(a[2])));
  if (op == "set_bool") return codeText(m.setBool(key, a[2] == "true"));
  if (op == "unset") return codeText(m.unset(key));
  if (op == "count") return m.count.toString();
  if (op == "names") return m.fields.join(",");
  if (op == "param") return textOr(m.param(key, a[2]));
  if (op == "set_param") return codeText(m.setParam(key, a[2], a[3]));
  if (op == "unset_param") return codeText(m.unsetParam(key, a[2]));
  if (op == "unset_element") return codeText(m.unsetElement(key));
  if (op == "record") return m.record;
  if (op == "set_record") return codeText(m.setRecord(key));
  if (op == "emit") return codeText(emit(key));
  if (op == "route") return codeText(m.route(key));
  if (op == "kv_get") return textOr(kv.get(key));
  if (op == "kv_set") return codeText(kv.set(key, a[2], number(a[3])));
  if (op == "kv_del") return codeText(kv.del(key));
  if (op == "kv_add") return or(kv.add(key, number(a[2])).toString());
  if (op == "metric_add") {
    metric.add(key, thousandths(a[2]));
    return "ok";
  }
  if (op == "metric_set") {
    metric.set(key, thousandths(a[2]));
    return "ok";
  }
  if (op == "enabled") return logEnabled(<i32>number(key)).toString();
  if (op == "now") return now() > 1577836800000000000 ? "ok" : "before 2020";
  if (op == "random") return random() != random() ? "ok" : "the same twice";
  if (op == "wait") {
    const until = now() + number(key) * 1000000;
    while (now() < until) {}
    return "ok";
  }
  if (op == "long") return codeText(m.set(key, repeat("x", a[2])));
  if (op == "long_key") return codeText(m.set(repeat("k", key), "v"));
  if (op == "long_kv") return codeText(kv.set(key, repeat("x", a[2])));
  if (op.startsWith("fill")) {
    for (let i: i64 = 0, n = number(key); i < n; i++) {
      const name = "f" + i.toString();
      const code = op == "fill" ? m.setInt(name, i)
        : op == "fill_params" ? m.setParam("fill@32473", name, "v")
        : op == "fill_kv" ? kv.set(name, "v")
        : new Record().int("i", i).emit();
      if (code != Code.Ok) return codeText(code) + " at " + i.toString();
    }
    return "ok";
  }
  throw new Error("no step " + op);
}

onStart((settings) => {
  const steps = settings.json("init");
  settings.json("tick");
  settings.json("close");
  if (steps !== null && run(none, steps) != Verdict.Keep) settings.refuse(reason);
});

handle((m) => {
  let verdict: i32 = Verdict.Keep;
  const steps = m.get("do");
  if (steps !== null) {
    m.unset("do");
    verdict = run(m, new Json(steps));
  }
  if (did.length > 0) {
    assert(m.setJSON("did", "[" + did.map<string>((s: string): string => quote(s)).join(",") + "]") == Code.Ok);
    did = [];
  }
  return verdict;
});

onTick(() => configured("tick"));
onClose(() => configured("close"));
