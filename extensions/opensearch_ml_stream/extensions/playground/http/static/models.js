// The models to choose from: one, and perhaps a second one beside it.

import { call } from "./api.js";
import { byId, make } from "./elements.js";
import { recall, remember } from "./preferences.js";

export class ModelChoice {
  /** `onChange()` after another choice. */
  constructor(onChange) {
    this.all = [];
    [this.first, this.second] = [byId("model"), byId("compare")];
    for (const choice of [this.first, this.second]) {
      choice.addEventListener("change", () => {
        remember("models", [this.first.value, this.second.value]);
        onChange();
      });
    }
  }

  /** Load the models and choose again what was chosen, at first what was chosen the last time. */
  async load() {
    const before = this.all.length ? [this.first.value, this.second.value] : recall("models", []);
    const { models } = await call("models");
    this.all = models;
    const options = () => models.map((model) => make("option", { value: model.id }, this.label(model)));
    this.first.replaceChildren(...options());
    this.second.replaceChildren(make("option", { value: "" }, "No second model"), ...options());
    this.choose(before);
    for (const choice of [this.first, this.second]) choice.disabled = models.length === 0;
  }

  /** Choose models by their ids, as far as there are such. */
  choose([first, second]) {
    if (this.all.some(({ id }) => id === first)) this.first.value = first;
    this.second.value = this.all.some(({ id }) => id === second) ? second : "";
  }

  /** The chosen models: one, or two that may be the same. */
  get chosen() {
    return [this.first.value, this.second.value].flatMap((id) => this.all.filter((model) => model.id === id));
  }

  /** A model's name, with a part of its id where another has the same. */
  label({ id, name }) {
    return this.all.filter((other) => other.name === name).length > 1 ? `${name} (${id.slice(0, 6)})` : name;
  }
}
