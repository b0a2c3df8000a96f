// The dialogs of a model: a new one from a blueprint, its settings, its deletion.

import { call } from "./api.js";
import { ask } from "./dialogs.js";
import { field, folded, make } from "./elements.js";
import { LimitFields } from "./limit_fields.js";
import { inWords, labelOf } from "./model_words.js";

const HIDDEN_NOTE = "It is stored encrypted and never shown again.";
const LONG = 60; // characters of a value that gets more than one line
const HINTED = /endpoints allow (\S+)/; // the server that is not allowed, in the sidecar's advice for the command line

/** Ask for a blueprint and its fields and create a model: `{id, isToBeTested}`, or null if the dialog was closed. */
export async function createModel() {
  const { blueprints } = await call("blueprints");
  const choice = make("select", { id: "blueprint" });
  const sorted = blueprints.toSorted((a, b) => titleOf(a).localeCompare(titleOf(b)));
  choice.append(...sorted.map((blueprint) => make("option", { value: blueprint.name }, titleOf(blueprint))));
  const place = make("div", { className: "fields" });
  let form;
  const show = () => {
    form = formOf(blueprints.find(({ name }) => name === choice.value));
    place.replaceChildren(...form.elements);
  };
  choice.addEventListener("change", show);
  show();
  const test = make("input", { id: "new-test", type: "checkbox", checked: true });
  const testing = field(test, "Test it at once", "One short call to the provider, which costs what a call costs.");
  testing.classList.add("check");
  const content = [field(choice, "Provider and kind"), place, testing];
  const created = await ask("New model", content, "Create", () => {
    const path = `blueprints/${encodeURIComponent(choice.value)}`;
    return withServers(() => call(path, { method: "POST", body: form.body() }));
  });
  return created && { id: created.model_id, isToBeTested: test.checked };
}

/** Ask for the changes of a model and make them; whether there were any. */
export async function editModel({ id }) {
  const path = `models/${encodeURIComponent(id)}/settings`;
  const model = await call(path);
  const name = textField("edit-name", "Name", "", { value: model.name, required: true });
  const description = textField("edit-description", "Description", "", { value: model.description }, "textarea");
  const { credential = [], parameters = [] } = model.connector ?? {};
  const keys = credential.map((one, index) => ({
    ...one, ...passwordField(`edit-credential-${index}`, one, "Leave it empty to keep the one that is stored."),
  }));
  const values = parameters.map((one, index) => ({ ...one, ...valueField(`edit-parameter-${index}`, one, one.value) }));
  const others = values.filter(({ is_explained: isExplained }) => !isExplained);
  const limits = new LimitFields(model.settings);
  const content = [
    name.element, description.element,
    ...keys.map(({ element }) => element),
    ...values.filter(({ is_explained: isExplained }) => isExplained).map(({ element }) => element),
    ...(others.length ? [folded("Other values of its connector", ...others.map(({ element }) => element))] : []),
    ...(model.connector ? [] : [make("p", { className: "note" }, "Its connector is not shown to you, so its values cannot be changed here.")]),
    ...limits.elements,
  ];
  const changes = () => {
    const changed = { credential: typed(keys), parameters: typed(values, ({ input, value }) => input.value !== String(value)), settings: limits.changes() };
    const given = Object.fromEntries(Object.entries(changed).filter(([, members]) => Object.keys(members).length));
    if (name.input.value !== model.name) given.name = name.input.value;
    if (description.input.value !== model.description) given.description = description.input.value;
    return given;
  };
  const edited = await ask("Change the model", content, "Save", async () => {
    const body = changes();
    if (Object.keys(body).length) await withServers(() => call(path, { method: "PUT", body }));
  });
  return edited !== null;
}

/** Ask whether the model may be deleted, and delete it; whether it is. */
export async function deleteModel(model) {
  const content = [make("p", {}, `“${model.name}” will be undeployed and deleted. Programs that use it will fail.`)];
  const path = `models/${encodeURIComponent(model.id)}`;
  return (await ask("Delete this model?", content, "Delete it", () => call(path, { method: "DELETE" }))) !== null;
}

/** Do what may be refused since the server of an endpoint is not allowed; that error offers to allow it. */
async function withServers(step) {
  try {
    return await step();
  } catch (error) {
    const [, url] = HINTED.exec(error.message) ?? [];
    if (!url) throw error;
    throw Object.assign(error, {
      what: `Models may not call ${url} yet.`,
      advice:
        "You can allow it: every connector of the sidecar may call it then, at its private address too. From then on the "
        + "list of allowed servers is kept as it is: those that a later version allows by itself have to be added by hand.",
      remedy: { label: `Allow ${url} and go on`, run: () => allow(url) },
    });
  }
}

async function allow(url) {
  try {
    await call("servers", { method: "POST", body: { url } });
  } catch (error) {
    if (error.status !== 403) throw error;
    throw Object.assign(error, {
      what: "You may not allow servers.",
      advice:
        "That needs the right to change settings (cluster:admin/settings/update). Ask somebody who has it to run: "
        + `opensearch-ml-stream endpoints allow ${url}`,
    });
  }
}

/** The fields of a new model, `elements`, and what was typed into them, `body()`. */
function formOf(blueprint) {
  const name = textField("new-model_name", "Name", "How programs and people call it.", { value: titleOf(blueprint), required: true });
  const keys = blueprint.credential.map((one) => ({ ...one, ...passwordField(`new-${one.name}`, one, HIDDEN_NOTE, one.required) }));
  const values = blueprint.parameters.map((one) => ({
    ...one, ...valueField(`new-${one.name}`, one, one.default ?? "", one.required),
  }));
  const { description } = blueprint;
  const text = description && description !== titleOf(blueprint) ? [make("p", { className: "note whole" }, ...inWords(description))] : [];
  return {
    elements: [...text, ...[name, ...keys, ...values].map(({ element }) => element)],
    body: () => ({ model_name: name.input.value.trim(), credential: typed(keys), parameters: typed(values) }),
  };
}

/** What was typed, by name. */
function typed(fields, isGiven = ({ input }) => input.value !== "") {
  return Object.fromEntries(fields.filter(isGiven).map(({ name, input }) => [name, input.value]));
}

function passwordField(id, { name, help }, hint, required = false) {
  const hints = [help, hint].filter(Boolean).map((text) => text.replace(/\.?$/, ".")).join(" ");
  return textField(id, labelOf(name), hints, { type: "password", autocomplete: "new-password", required });
}

function valueField(id, { name, help }, value, required = false) {
  return textField(id, labelOf(name), help, { value, required }, String(value).length > LONG ? "textarea" : "input");
}

function textField(id, label, hint, properties, tag = "input") {
  const input = make(tag, { id, spellcheck: false, autocomplete: "off", ...properties });
  const mark = properties.required ? [make("span", { className: "required" }, " (required)")] : [];
  return { input, element: field(input, label, hint && inWords(hint), ...mark) };
}

const titleOf = ({ title, name }) => title ?? name;
