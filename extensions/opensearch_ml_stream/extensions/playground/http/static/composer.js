// The message that is being written, and the buttons that send it and stop the answer.

import { Attachments } from "./attachments.js";
import { byId } from "./elements.js";
import { recall, remember } from "./preferences.js";
import { showError } from "./problems.js";

const isTouched = matchMedia("(pointer: coarse)"); // where Enter begins a line, as there is no Shift to hold

export class Composer {
  /** `onSend(question)` and `onStop()`. */
  constructor(onSend, onStop) {
    this.form = byId("composer");
    this.prompt = byId("prompt");
    [this.sendButton, this.stopButton] = [byId("send"), byId("stop")];
    this.problem = byId("composer-problem");
    this.attachments = new Attachments(this.form, (text) => this.complain(text));
    this.prompt.value = recall("prompt", "");
    this.prompt.addEventListener("input", () => {
      remember("prompt", this.prompt.value);
      this.problem.replaceChildren();
    });
    this.prompt.addEventListener("keydown", (event) => {
      const sends = event.ctrlKey || event.metaKey || (!event.shiftKey && !isTouched.matches);
      if (event.key !== "Enter" || event.isComposing || !sends) return;
      event.preventDefault();
      this.form.requestSubmit();
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.stopButton.hidden && !document.querySelector("dialog[open]")) onStop();
    });
    this.stopButton.addEventListener("click", onStop);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = this.prompt.value;
      if (!this.stopButton.hidden || this.sendButton.disabled || (!text.trim() && !this.attachments.value.length)) return;
      this.write("");
      onSend({ text, attachments: this.attachments.take() });
    });
  }

  /** Whether there is a model to send to. */
  set isUsable(value) {
    this.sendButton.disabled = !value;
  }

  write(text) {
    this.prompt.value = text;
    this.prompt.dispatchEvent(new Event("input"));
  }

  /** Show Stop while an answer comes, else Send; the keyboard stays where it can do something. */
  setRunning(isRunning) {
    const [from, to] = isRunning ? [this.sendButton, this.stopButton] : [this.stopButton, this.sendButton];
    const hadFocus = document.activeElement === from;
    from.hidden = true;
    to.hidden = false;
    if (hadFocus) (isRunning ? to : this.prompt).focus();
  }

  complain(text) {
    showError(this.problem, { what: text });
  }
}
