// The models: a list that can be searched, each with what can be done with it.

import { call } from "./api.js";
import { field, list, make, number } from "./elements.js";
import { ModelCard } from "./model_card.js";
import { createModel } from "./model_editor.js";
import { showError } from "./problems.js";

const AT_ONCE = 50; // models that are shown before more are asked for

/**
 * Show the models in a section, each time that the page's hash is `#models`. `changed()` is told of each change; `use(id)`
 * is where a model is asked something.
 */
export function mountModels(section, { changed, use }) {
  const panel = new ModelsPanel(section, changed, use);
  const show = () => location.hash === "#models" && panel.load();
  addEventListener("hashchange", show);
  show();
  return panel;
}

class ModelsPanel {
  constructor(section, changed, use) {
    this.changed = changed;
    this.use = use;
    this.models = [];
    this.cards = new Map();
    this.shown = AT_ONCE;
    this.opener = make("button", { type: "button" }, "New model");
    this.opener.addEventListener("click", () => this.create());
    this.filter = make("input", { id: "models-filter", type: "search", autocomplete: "off" });
    this.filter.addEventListener("input", () => this.draw());
    this.search = field(this.filter, "Find a model");
    this.search.hidden = true;
    this.problem = make("div");
    this.count = make("p", { className: "note", role: "status" });
    this.list = make("ul", { className: "models", "aria-label": "Models" });
    this.more = make("button", { type: "button", className: "quiet" }, "Show more");
    this.more.addEventListener("click", () => {
      this.shown += AT_ONCE;
      this.draw();
    });
    const head = make("div", { className: "row models-head" }, this.count, this.opener);
    section.replaceChildren(make("div", { className: "models-panel" }, head, this.search, this.problem, this.list, this.more));
  }

  /** Read the models and show them. */
  load() {
    return this.doing(async () => {
      const { models } = await call("models");
      this.models = models.map((model) => ({ ...model, called: models.some((other) => other !== model && other.name === model.name) ? model.id : model.name }));
      this.draw();
    });
  }

  /** Ask for a new model, and show it. */
  create() {
    return this.doing(async () => {
      const created = await createModel();
      if (!created) return;
      this.filter.value = "";
      await this.reload();
      const card = this.cards.get(created.id);
      card?.element.scrollIntoView({ block: "nearest" });
      if (created.isToBeTested) await card?.test();
    });
  }

  async reload() {
    await this.load();
    await this.changed();
  }

  /** Do a step; its error is shown. */
  async doing(step) {
    try {
      this.problem.replaceChildren();
      await step();
    } catch (error) {
      showError(this.problem, error);
    }
  }

  /** The card of a model: the one that is there if nothing has changed, with its verdict and what is open in it. */
  cardOf(model) {
    const card = this.cards.get(model.id);
    return card && isSame(card.model, model) ? card : new ModelCard(model, this);
  }

  draw() {
    const wanted = this.filter.value.trim().toLowerCase();
    const found = this.models.filter(({ name, provider, description }) => `${name} ${provider} ${description}`.toLowerCase().includes(wanted));
    const shown = found.slice(0, this.shown);
    this.cards = new Map(shown.map((model) => [model.id, this.cardOf(model)]));
    list(this.list, [...this.cards.values()].map(({ element }) => element));
    this.search.hidden = this.models.length < 8;
    this.more.hidden = found.length <= shown.length;
    this.count.textContent = this.models.length ? counted(found.length, this.models.length) : "There is no model yet that you may see.";
  }
}

/** Whether two entries of the list say the same. */
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function counted(found, all) {
  const models = all === 1 ? "1 model" : `${number(all)} models`;
  return found === all ? models : `${number(found)} of ${models}`;
}
