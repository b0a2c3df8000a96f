// The tool calls of an answer: folded, each with a place for its result.

import { make } from "./elements.js";
import { hasResults } from "./conversation.js";

export class ToolCalls {
  constructor(answer, onSend) {
    this.answer = answer;
    this.list = make("div");
    this.send = make("button", { type: "button", hidden: true }, "Send the results");
    this.send.addEventListener("click", onSend);
    this.element = make("div", { className: "calls", hidden: true }, this.list, this.send);
    this.shown = [];
  }

  /** Take a fragment of a call, as streams have them; a whole response has whole ones. */
  add({ index, id, function: called }, position) {
    const at = index ?? position;
    const call = (this.answer.calls[at] ??= { id: `call_${at}`, name: "", arguments: "" });
    if (id) call.id = id;
    if (called?.name) call.name = called.name;
    call.arguments += called?.arguments ?? "";
  }

  draw() {
    const { calls } = this.answer;
    this.element.hidden = calls.length === 0;
    calls.forEach((call, index) => {
      this.shown[index] ??= this.place(index);
      const { name, json } = this.shown[index];
      if (name.textContent !== call.name) name.textContent = call.name;
      if (json.textContent !== call.arguments) json.textContent = call.arguments;
    });
  }

  /** Offer fields for the results, or show those that were sent. */
  end() {
    const { calls, results } = this.answer;
    this.answer.calls = calls.filter(Boolean);
    this.draw();
    this.shown.forEach(({ json, element }, index) => {
      const { id, name, arguments: text } = this.answer.calls[index];
      json.textContent = indented(text);
      element.open = !(id in results);
      element.append(id in results ? this.sent(results[id]) : this.field(id, name));
    });
    this.send.hidden = !this.answer.calls.length || hasResults(this.answer);
  }

  /** Take what was typed as the results of the calls. */
  take() {
    for (const field of this.list.querySelectorAll("textarea")) {
      this.answer.results[field.dataset.call] = field.value;
      field.closest(".field").replaceWith(this.sent(field.value));
    }
    for (const { element } of this.shown) element.open = false;
    this.send.hidden = true;
  }

  place(index) {
    const [name, json] = [make("code"), make("pre", { tabIndex: 0, role: "group", "aria-label": "Arguments" })];
    const element = make("details", { className: "part call" }, make("summary", {}, "Calls ", name), json);
    this.list.append(element);
    return { name, json, element, index };
  }

  field(id, name) {
    const field = make("textarea", { rows: 2, id: `result-${crypto.randomUUID?.() ?? id}`, spellcheck: false });
    field.dataset.call = id;
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.send.click();
    });
    return make("div", { className: "field" }, make("label", { for: field.id }, `Result of ${name || "the call"}`), field);
  }

  sent(text) {
    return make("div", { className: "field" }, make("p", { className: "note" }, "Result"), make("pre", { tabIndex: 0, role: "group", "aria-label": "Result" }, text));
  }
}

function indented(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
