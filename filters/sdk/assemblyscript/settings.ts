import { Json } from "./json";

/**
 * A filter's configuration, to be read into a class:
 *
 *     class Mask {
 *       with: string;
 *       apps: string[];
 *       constructor(s: Settings) {
 *         this.with = s.text("with", "#");
 *         this.apps = s.texts("apps");
 *       }
 *     }
 *     let mask!: Mask;
 *     onStart((s) => { mask = new Mask(s); });
 *
 * Each of these functions returns otherwise when the setting is left out. One of another type refuses the module, and so does
 * one that nobody asked for, which is most likely misspelt.
 */
export class Settings {
  private members: Map<string, Json>;
  private asked: string[] = [];
  private why: string | null = null;

  /** Reads a configuration as JSON. */
  constructor(json: string) {
    this.members = new Json(json).members;
  }

  /** Refuses the module with this reason; the first one counts. */
  refuse(reason: string): void {
    if (this.why === null) this.why = reason;
  }

  /** What is wrong, null when nothing is. */
  get wrong(): string | null {
    if (this.why !== null) return this.why;
    const names = this.members.keys();
    for (let i = 0; i < names.length; i++) {
      if (!this.asked.includes(names[i])) {
        const there = this.asked.length > 0 ? ": there are " + this.asked.join(", ") : "";
        return "config: there is no setting " + names[i] + there;
      }
    }
    return null;
  }

  /** Whether the setting is given; null is not. */
  has(name: string): bool {
    return this.find(name) !== null;
  }

  /** Refuses the module when the setting is not given. */
  require(name: string): this {
    if (this.find(name) === null) this.refuse("config: " + name + " is missing");
    return this;
  }

  text(name: string, otherwise: string = ""): string {
    const v = this.find(name);
    if (v === null) return otherwise;
    if (!v.isString) this.mustBe(name, "a text");
    return v.string;
  }

  int(name: string, otherwise: i64 = 0): i64 {
    const v = this.find(name);
    if (v === null) return otherwise;
    if (!v.isInt) this.mustBe(name, "an integer");
    return v.int;
  }

  float(name: string, otherwise: f64 = 0): f64 {
    const v = this.find(name);
    if (v === null) return otherwise;
    if (!v.isNumber) this.mustBe(name, "a number");
    return v.float;
  }

  bool(name: string, otherwise: bool = false): bool {
    const v = this.find(name);
    if (v === null) return otherwise;
    if (!v.isBool) this.mustBe(name, "true or false");
    return v.bool;
  }

  /** A list of texts. */
  texts(name: string, otherwise: string[] = []): string[] {
    const v = this.find(name);
    if (v === null) return otherwise;
    const all: string[] = [];
    const elements = v.elements;
    for (let i = 0; i < elements.length; i++) {
      if (!elements[i].isString) this.mustBe(name, "a list of texts");
      all.push(elements[i].string);
    }
    if (!v.isArray) this.mustBe(name, "a list of texts");
    return all;
  }

  /** A mapping from text to text. */
  table(name: string): Map<string, string> {
    const all = new Map<string, string>();
    const v = this.find(name);
    if (v === null) return all;
    if (!v.isObject) this.mustBe(name, "a mapping from text to text");
    const members = v.members;
    const keys = members.keys();
    for (let i = 0; i < keys.length; i++) {
      const text = members.get(keys[i]);
      if (!text.isString) this.mustBe(name, "a mapping from text to text");
      all.set(keys[i], text.string);
    }
    return all;
  }

  /** Any other value, as JSON. null when it is left out. */
  json(name: string): Json | null {
    return this.find(name);
  }

  private find(name: string): Json | null {
    if (!this.asked.includes(name)) this.asked.push(name);
    if (!this.members.has(name)) return null;
    const v = this.members.get(name);
    return v.isNull ? null : v;
  }

  private mustBe(name: string, what: string): void {
    this.refuse("config: " + name + " must be " + what);
  }
}
