// The call of a model as code, by each door of the sidecar and in each language.

import { copyable, folded, make } from "./elements.js";
import { explained } from "./problems.js";
import { DOORS, LANGUAGES, codeOf, requestAt } from "./snippets.js";

const PROMPT = "Why is the sky blue?";

/** A part that opens, with a choice of doors and languages; `load()` is the model's form, when it is needed. */
export function codePart(model, load) {
  const text = make("code");
  const [door, language] = [choice("API", DOORS), choice("Language", LANGUAGES)];
  const part = folded("Code", copyable(`Code that calls ${model.name}`, text, door.element, language.element));
  part.classList.add("code-part");
  let form = null;
  const draw = () => {
    text.textContent = codeOf(language.select.value, requestAt(door.select.value, model, form, PROMPT), model);
  };
  for (const { select } of [door, language]) select.addEventListener("change", () => form && draw());
  part.addEventListener("toggle", async () => {
    if (!part.open || form) return;
    try {
      form = await load();
      if (form.kind === "embedding") door.select.querySelector("[value=anthropic]").remove(); // it has none
      draw();
    } catch (error) {
      const { what, advice } = explained(error);
      text.textContent = `${what} ${advice}`;
    }
  });
  return part;
}

function choice(label, options) {
  const select = make("select", { className: "small" }, ...Object.entries(options).map(([value, text]) => make("option", { value }, text)));
  return { select, element: make("label", { className: "inline" }, make("span", { className: "unseen" }, label), select) };
}
