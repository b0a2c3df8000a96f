// The dialogs: a new model from a blueprint, and the deletion of one.

import { call } from "./api.js";
import { make } from "./elements.js";
import { showError } from "./problems.js";

/** Ask for a blueprint and its fields and create a model; its id, or null if the dialog was closed. */
export async function createFromBlueprint() {
  const { blueprints } = await call("blueprints");
  const fields = make("div", { className: "fields" });
  const choice = make("select", { id: "blueprint" });
  choice.append(...blueprints.map(({ name, title }) => make("option", { value: name }, title ?? name)));
  const current = () => blueprints.find(({ name }) => name === choice.value);
  const show = () => fields.replaceChildren(...fieldsOf(current()));
  choice.addEventListener("change", show);
  show();
  const content = [make("div", { className: "field" }, make("label", { for: "blueprint" }, "Blueprint"), choice), fields];
  const created = await ask("New from a blueprint", content, "Create", (form) => {
    const typed = (group) => Object.fromEntries(
      [...form.querySelectorAll(`[data-group=${group}]`)].map(({ name, value }) => [name, value]).filter(([, value]) => value !== ""),
    );
    const body = { model_name: form.elements.model_name.value.trim(), credential: typed("credential"), parameters: typed("parameters") };
    return call(`blueprints/${encodeURIComponent(choice.value)}`, { method: "POST", body });
  });
  return created?.model_id ?? null;
}

/** Ask whether the model may be deleted, and delete it; whether it is. */
export async function deleteAfterAsking(model) {
  const text = `“${model.name}” will be undeployed and deleted. Programs that use it will fail.`;
  const content = [make("p", {}, text)];
  const deleted = await ask("Delete this model?", content, "Delete it", () =>
    call(`models/${encodeURIComponent(model.id)}`, { method: "DELETE" }));
  return deleted !== null;
}

function fieldsOf(blueprint) {
  const { name, title, description, credential, credential_help: help, parameters } = blueprint;
  return [
    ...(description ? [make("p", { className: "note" }, description)] : []),
    field("Name", "", { name: "model_name", value: title ?? name, required: true }),
    ...credential.map((key) => {
      const note = [help?.[key], "It is stored encrypted and never shown again."].filter(Boolean).join(". ");
      return field(key, note, { name: key, type: "password", autocomplete: "new-password" }, "credential");
    }),
    ...parameters.map((parameter) => {
      const isRequired = (parameter.default ?? null) === null;
      return field(parameter.name, parameter.help, { name: parameter.name, value: parameter.default ?? "", required: isRequired }, "parameters");
    }),
  ];
}

function field(label, hint, properties, group = "") {
  const input = make("input", { id: `new-${properties.name}`, spellcheck: false, autocomplete: "off", ...properties });
  input.dataset.group = group;
  const note = hint ? [make("p", { className: "note", id: `${input.id}-note` }, hint)] : [];
  if (hint) input.setAttribute("aria-describedby", `${input.id}-note`);
  return make("div", { className: "field" }, make("label", { for: input.id }, label), input, ...note);
}

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
        showError(problem, error);
        yes.disabled = false;
      }
    });
    dialog.showModal();
  });
}
