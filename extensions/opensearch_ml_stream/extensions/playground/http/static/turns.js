// The conversation before the prompt: a system text and earlier turns.

import { byId, make } from "./elements.js";

const ROLES = ["user", "assistant"];

export class Turns {
  constructor() {
    this.list = byId("turns");
    this.system = byId("system");
    byId("add-turn").addEventListener("click", () => this.add(this.nextRole()).focus());
    this.system.addEventListener("input", () => this.count());
    this.list.addEventListener("input", () => this.count());
    this.count();
  }

  /** The system text, and `{role, text}` of each turn that is not empty. */
  get value() {
    const turns = [...this.list.children].map((item) => ({
      role: item.querySelector("select").value,
      text: item.querySelector("textarea").value,
    }));
    return { system: this.system.value.trim(), turns: turns.filter(({ text }) => text.trim()) };
  }

  /** Append a turn; the field of its text. */
  add(role, text = "") {
    const choice = make("select", { "aria-label": "Role" }, ...ROLES.map((name) => make("option", {}, name)));
    choice.value = role;
    const field = make("textarea", { rows: 2, value: text, "aria-label": "Turn" });
    const remove = make("button", { type: "button", className: "quiet small", "aria-label": "Remove this turn" }, "Remove");
    const item = make("li", {}, make("div", { className: "row" }, choice, remove), field);
    remove.addEventListener("click", () => {
      item.remove();
      this.count();
      byId("add-turn").focus();
    });
    this.list.append(item);
    this.count();
    return field;
  }

  /** The role of the turn that would come next. */
  nextRole() {
    const last = this.list.lastElementChild?.querySelector("select").value;
    return last === "user" ? "assistant" : "user";
  }

  count() {
    const { system, turns } = this.value;
    const parts = [system && "system", turns.length && `${turns.length} earlier`];
    byId("turn-count").textContent = parts.filter(Boolean).join(" · ");
  }
}
