// The settings of a conversation: its system text, how the model samples, its tools, and anything else for the request.

import { SettingError, bodyOf } from "./chat_request.js";
import { ask } from "./dialogs.js";
import { field, make } from "./elements.js";

const EFFORTS = ["", "none", "minimal", "low", "medium", "high"];
const FIELDS = [
  ["system", "System text", "How the answers should be, such as “Be brief”.", { rows: 3 }],
  ["temperature", "Temperature", "Higher is more varied. Empty: as the model has it.", { inputMode: "decimal" }],
  ["top_p", "Top p", "", { inputMode: "decimal" }],
  ["max_tokens", "Most tokens of an answer", "", { inputMode: "numeric" }],
  ["seed", "Seed", "", { inputMode: "numeric" }],
  ["stop", "Stop at", "Texts that end an answer, one a line.", { rows: 2 }],
  ["reasoning_effort", "Reasoning effort", "", { options: EFFORTS }],
  ["tools", "Tools", "A list in JSON: each has a name, a description and parameters.", { rows: 4 }],
  ["more", "Further members of the request", "An object in JSON, such as {\"top_k\": 20}.", { rows: 2 }],
];
const LABELS = Object.fromEntries(FIELDS.map(([name, label]) => [name, label]));

/** How many settings are set. */
export const countOf = (settings) => Object.values(settings).filter((value) => value?.trim()).length;

/** Ask for the settings; the new ones, or null if the dialog was left. */
export function askForSettings(settings) {
  const fields = FIELDS.map((one) => fieldOf(one, settings));
  return ask("Parameters", [make("div", { className: "fields" }, ...fields)], "Use these", (form) => {
    const typed = FIELDS.map(([name]) => [name, form.elements[name].value]);
    const chosen = Object.fromEntries(typed.filter(([, value]) => value.trim()));
    checked(chosen);
    return chosen;
  });
}

function checked(settings) {
  try {
    bodyOf(settings);
  } catch (error) {
    if (error instanceof SettingError) error.message = `“${LABELS[error.field]}” ${error.message}`;
    throw error;
  }
}

function fieldOf([name, label, hint, { rows, options, ...more }], settings) {
  const properties = { id: `setting-${name}`, name };
  let input;
  if (options) {
    input = make("select", properties, ...options.map((option) => make("option", { value: option }, option || "As the model has it")));
  } else {
    input = make(rows ? "textarea" : "input", { ...properties, ...more, ...(rows ? { rows } : {}), spellcheck: name === "system" });
  }
  input.value = settings[name] ?? "";
  const element = field(input, label, hint);
  element.classList.toggle("whole", Boolean(rows));
  return element;
}
