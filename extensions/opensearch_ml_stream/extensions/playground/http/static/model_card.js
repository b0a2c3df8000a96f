// One model in the list: what it is and may cost, and what can be done with it.

import { call } from "./api.js";
import { codePart } from "./code_part.js";
import { button, folded, make, showFigures } from "./elements.js";
import { embeddingsForm } from "./embeddings.js";
import { deleteModel, editModel } from "./model_editor.js";
import { tested } from "./model_test.js";
import { accessInWords, budgetsInWords, inWords, limitsInWords, stateInWords } from "./model_words.js";
import { showError } from "./problems.js";

export class ModelCard {
  /** `panel` has `doing(step)`, `reload()`, `use(id)`, the cards by id, and the `opener` of a new model. */
  constructor(model, panel) {
    this.model = model;
    this.panel = panel;
    this.verdict = make("div", { className: "verdict", role: "status" });
    const { id, name, description, gives_vectors: givesVectors } = model;
    const act = (text, step, kind = "") =>
      button(text, () => panel.doing(step), { className: `quiet small ${kind}`, "aria-label": `${text} ${name}` });
    this.testing = act("Test", () => this.test());
    this.changing = act("Change", () => this.change());
    const asking = givesVectors ? [] : [act("Ask", () => panel.use(id))];
    const buttons = [...asking, this.testing, this.changing, act("Delete", () => this.delete(), "danger")];
    this.element = make(
      "li", { className: "card model" },
      make("h2", {}, name), ...(description ? [make("p", { className: "note" }, ...inWords(description))] : []), factsOf(model),
      make("div", { className: "row" }, ...buttons), this.verdict,
      ...(givesVectors ? [folded("Similarity of texts", embeddingsForm(model))] : []),
      codePart(model, () => call(`models/${encodeURIComponent(id)}`)),
    );
  }

  async change() {
    if (!(await editModel(this.model))) return;
    await this.panel.reload();
    this.panel.cards.get(this.model.id)?.changing.focus(); // of the card that took this one's place
  }

  async delete() {
    if (!(await deleteModel(this.model))) return;
    await this.panel.reload();
    this.panel.opener.focus(); // its own buttons are no more
  }

  /** Call the model once, and say whether it works. */
  async test() {
    this.testing.disabled = true;
    this.verdict.replaceChildren(make("p", { className: "note" }, "Calling the provider …"));
    try {
      this.verdict.replaceChildren(...(await tested(this.model)));
    } catch (error) {
      showError(this.verdict, error, "It could not be tested.");
    }
    this.testing.disabled = false;
  }
}

function factsOf(model) {
  const kind = model.gives_vectors ? "gives vectors" : model.can_stream ? "streams" : "does not stream";
  const facts = make("dl", { className: "facts" });
  const optional = [
    ["Access", accessInWords(model)], ["Limits", limitsInWords(model).join("; ")],
    ["Budgets", budgetsInWords(model).join("; ")], ["Id", model.id],
  ];
  showFigures(facts, [
    ["Provider", [model.provider, kind].filter(Boolean).join(", ")],
    ["State", stateInWords(model)],
    ...optional.filter(([, value]) => value),
  ]);
  return facts;
}
