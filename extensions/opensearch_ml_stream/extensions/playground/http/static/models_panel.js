// The models, apart from the thread: made from a blueprint, and deleted.

import { createFromBlueprint, deleteAfterAsking } from "./dialogs.js";
import { button, make } from "./elements.js";
import { showProblem } from "./problems.js";

/** Show the models in `place`; `onChange()` after one is made or gone. */
export function showModels(place, models, onChange) {
  const problem = make("div");
  const act = async (step) => {
    try {
      problem.replaceChildren();
      if (await step()) await onChange();
    } catch (error) {
      showProblem(problem, error);
    }
  };
  const create = make("button", { type: "button", id: "create" }, "New from a blueprint");
  create.addEventListener("click", () => act(createFromBlueprint));
  const items = models.map((model) => make("li", { className: "card" },
    make("strong", {}, model.name), make("p", { className: "note" }, [model.provider, model.state.toLowerCase()].filter(Boolean).join(" · ")),
    button("Delete", () => act(() => deleteAfterAsking(model)), { className: "quiet small danger", "aria-label": `Delete ${model.name}` })));
  place.replaceChildren(make("div", { className: "inner" }, problem, create, make("ul", { className: "model-list" }, ...items)));
}
