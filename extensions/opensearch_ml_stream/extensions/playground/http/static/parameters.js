// The form of a connector's parameters, made from its template's placeholders.

import { byId, make } from "./elements.js";

// What the prompt and the conversation fill; they have fields of their own.
const TURNS = ["messages", "contents", "prompt", "inputs", "input", "message", "system", "text_docs"];

export class ParameterForm {
  constructor() {
    this.place = byId("parameter-fields");
    this.kept = new Map(); // what was typed, by name, also of parameters that this model does not have
    this.place.addEventListener("input", (event) => {
      this.kept.set(event.target.name, event.target.value);
      this.count();
    });
  }

  /** Show the fields of all the models that are chosen, each name once. */
  show(models) {
    const parameters = new Map();
    for (const { kind, parameters: own } of models) {
      for (const parameter of own) {
        const isTurn = kind !== "other" && TURNS.includes(parameter.name);
        if (!isTurn && !parameters.has(parameter.name)) parameters.set(parameter.name, parameter);
      }
    }
    this.names = [...parameters.keys()];
    this.place.replaceChildren(...[...parameters.values()].map((parameter) => this.field(parameter)));
    byId("parameters").hidden = this.names.length === 0;
    if ([...parameters.values()].some(({ required }) => required)) byId("parameters").open = true;
    this.count();
  }

  /** What was typed, by name: only parameters that this model has. */
  valuesFor({ parameters }) {
    const own = parameters.map(({ name }) => name).filter((name) => this.names.includes(name));
    const typed = own.map((name) => [name, this.kept.get(name) ?? ""]).filter(([, text]) => text.trim());
    return Object.fromEntries(typed.map(([name, text]) => [name, valueOf(text)]));
  }

  field({ name, default: value, required }) {
    const isLong = (value ?? "").length > 60;
    const input = make(isLong ? "textarea" : "input", {
      id: `parameter-${name}`, name, value: this.kept.get(name) ?? "", spellcheck: false, "aria-required": Boolean(required),
      placeholder: required ? "required" : value ?? "",
    });
    return make("div", { className: "field" }, make("label", { for: input.id }, make("code", {}, name)), input);
  }

  count() {
    const typed = this.names.filter((name) => this.kept.get(name)?.trim()).length;
    byId("parameter-count").textContent = typed ? `${typed} of ${this.names.length} set` : `${this.names.length}`;
  }
}

/** A number, list, object, true, false and null as such, and all else as the string that was typed. */
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
