// The models, apart from the thread: made from a blueprint, and deleted.

import { call } from "./api.js";
import { createFromBlueprint, deleteAfterAsking } from "./dialogs.js";
import { button, make } from "./elements.js";
import { showError } from "./problems.js";

/**
 * Show the models in a section, each time that the page's hash is `#models`. `changed()` is told of each change;
 * `use(id)` is where a model is asked something.
 */
export function mountModels(section, { changed, use }) {
  const problem = make("div");
  const list = make("ul", { className: "model-list" });
  const create = make("button", { type: "button" }, "New from a blueprint");
  const act = async (step) => {
    try {
      problem.replaceChildren();
      if (!(await step())) return;
      await show();
      await changed();
    } catch (error) {
      showError(problem, error);
    }
  };
  const itemOf = (model) => make("li", { className: "card" },
    make("strong", {}, model.name), make("p", { className: "note" }, [model.provider, model.state.toLowerCase()].filter(Boolean).join(" · ")),
    button("Ask", () => use(model.id), { "aria-label": `Ask ${model.name}` }),
    button("Delete", () => act(() => deleteAfterAsking(model)), { className: "quiet small danger", "aria-label": `Delete ${model.name}` }));
  const show = async () => list.replaceChildren(...(await call("models")).models.map(itemOf));
  create.addEventListener("click", () => act(createFromBlueprint));
  section.replaceChildren(make("div", { className: "inner" }, problem, create, list));
  const open = () => location.hash === "#models" && act(show);
  addEventListener("hashchange", open);
  open();
}
