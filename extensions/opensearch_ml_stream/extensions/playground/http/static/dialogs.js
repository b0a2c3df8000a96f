// A dialog that asks before something is done.

import { button, make } from "./elements.js";
import { showError } from "./problems.js";

/**
 * A modal dialog that does `act(form)` when it is confirmed; what `act` returns, or null if it was closed.
 * An error of `act` is shown in it; one with a `remedy`, `{label, run}`, with a button that runs it and tries again.
 */
export function ask(title, content, confirm, act) {
  const problem = make("div");
  const yes = make("button", { type: "submit" }, confirm);
  const no = make("button", { type: "button", className: "quiet" }, "Cancel");
  const heading = make("h2", { id: "dialog-title" }, title);
  const form = make("form", {}, heading, ...content, problem, make("div", { className: "row main-buttons" }, yes, no));
  no.autofocus = !form.querySelector("input, select, textarea"); // a stray Enter deletes nothing
  const dialog = make("dialog", { className: "card", "aria-labelledby": "dialog-title" }, form);
  const origin = document.activeElement;
  document.body.append(dialog);
  return new Promise((resolve) => {
    let result = null;
    const attempt = async (step) => {
      yes.disabled = true;
      try {
        await step();
        result = (await act(form)) ?? {};
        dialog.close();
      } catch (error) {
        const { remedy } = error;
        showError(problem, error);
        if (remedy) problem.append(button(remedy.label, ({ target }) => {
          target.disabled = true;
          return attempt(remedy.run);
        }));
      }
      yes.disabled = false;
    };
    no.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (origin?.isConnected) origin.focus();
      resolve(result);
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!yes.disabled) attempt(() => {});
    });
    dialog.showModal();
  });
}
