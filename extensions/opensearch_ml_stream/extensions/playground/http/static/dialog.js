// Dialogs: a question, or a form, that is confirmed or left.

import { make } from "./elements.js";
import { showProblem } from "./problems.js";

/** A modal dialog that does `act(form)` when it is confirmed; what `act` returns, or null if it was closed. */
export function ask(title, content, confirm, act) {
  const problem = make("div");
  const yes = make("button", { type: "submit" }, confirm);
  const no = make("button", { type: "button", className: "quiet" }, "Cancel");
  const form = make("form", { noValidate: true }, make("h2", { id: "dialog-title" }, title), ...content, problem, make("div", { className: "row main-buttons" }, yes, no));
  no.autofocus = !form.querySelector("input, select, textarea"); // a stray Enter deletes nothing
  const dialog = make("dialog", { className: "card", "aria-labelledby": "dialog-title" }, form);
  document.body.append(dialog);
  return new Promise((resolve) => {
    let result = null;
    no.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      yes.disabled = true;
      try {
        result = (await act(form)) ?? {};
        dialog.close();
      } catch (error) {
        showProblem(problem, error);
        yes.disabled = false;
      }
    });
    dialog.showModal();
  });
}
