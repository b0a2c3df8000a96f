// A question in the thread, which can be copied, and edited and sent again.

import { attachmentElement } from "./attachments.js";
import { button, copy, make } from "./elements.js";

export class QuestionView {
  /** `onEdit(text)` sends the question again with another text; `follows()` is whether answers of later rounds go. */
  constructor(question, { onEdit, follows }) {
    this.question = question;
    this.onEdit = onEdit;
    this.follows = follows;
    this.element = make("div", { className: "question" });
    this.show();
  }

  show() {
    const { text, attachments = [], isResults } = this.question;
    if (isResults) {
      this.element.replaceChildren(make("p", { className: "note" }, "The results of the calls were sent."));
      return;
    }
    const copying = button("Copy", () => copy(text, copying), { "aria-label": "Copy the question" });
    this.editing = button("Edit", () => this.edit(), { "aria-label": "Edit the question" });
    const files = attachments.map((one) => make("li", {}, attachmentElement(one)));
    this.element.replaceChildren(
      make("h2", { className: "unseen" }, "You"),
      ...(files.length ? [make("ul", { className: "attachments", "aria-label": "Attachments" }, ...files)] : []),
      ...(text ? [make("div", { className: "bubble" }, text)] : []),
      make("div", { className: "actions" }, copying, this.editing),
    );
  }

  edit() {
    const field = make("textarea", { value: this.question.text, rows: 3, "aria-label": "Question" });
    const send = make("button", { type: "submit" }, this.follows() ? "Send, and drop what follows" : "Send");
    const cancel = button("Cancel", () => this.leave());
    const form = make("form", { className: "edit", "aria-label": "Edit the question" }, field, make("div", { className: "row" }, send, cancel));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim()) this.onEdit(field.value);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.leave();
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        form.requestSubmit();
      }
    });
    this.element.replaceChildren(form);
    field.focus();
  }

  leave() {
    this.show();
    this.editing.focus();
  }
}
