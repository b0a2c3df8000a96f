// The conversations of this browser: open, rename, export, delete.

import { ask } from "./dialogs.js";
import { byId, field, list, make } from "./elements.js";
import { download } from "./exports.js";

const ACTS = ["Rename", "Export as Markdown", "Export as JSON", "Delete"];

export class ConversationList {
  /** `hooks`: `open(id)`, `renamed(id, title)`, `deleted(id)`. */
  constructor(store, hooks) {
    this.store = store;
    this.hooks = hooks;
    this.list = byId("conversations");
  }

  /** Show the conversations; `current` is the one in the thread. */
  async show(current) {
    const heads = await this.store.heads();
    byId("no-conversations").hidden = heads.length > 0;
    list(this.list, heads.map((head) => this.item(head, head.id === current)));
  }

  item({ id, title }, isCurrent) {
    const open = make("button", { type: "button", className: "conversation" }, title || "Conversation");
    if (isCurrent) open.setAttribute("aria-current", "true");
    open.addEventListener("click", () => this.hooks.open(id));
    const more = make("select", { className: "more", "aria-label": `More for ${title}` },
      make("option", { value: "", hidden: true }, "⋯"), ...ACTS.map((act) => make("option", { value: act }, act)));
    more.addEventListener("change", () => {
      const act = more.value;
      more.value = "";
      this.act(act, id, title);
    });
    return make("li", {}, open, more);
  }

  async act(act, id, title) {
    if (act === "Rename") await this.rename(id, title);
    else if (act === "Delete") await this.delete(id, title);
    else download(await this.store.load(id), act === "Export as JSON" ? "json" : "markdown");
  }

  async rename(id, title) {
    const input = make("input", { id: "new-title", value: title, maxLength: 200 });
    const renamed = await ask("Rename the conversation", [field(input, "Name")], "Rename", async () => {
      const name = input.value.trim() || title;
      await this.store.save({ ...(await this.store.load(id)), title: name });
      return name;
    });
    if (renamed) this.hooks.renamed(id, renamed);
  }

  async delete(id, title) {
    const text = `“${title}” is kept in this browser alone, and cannot be brought back.`;
    const deleted = await ask("Delete this conversation?", [make("p", {}, text)], "Delete it", () => this.store.delete(id));
    if (deleted) this.hooks.deleted(id);
  }
}
