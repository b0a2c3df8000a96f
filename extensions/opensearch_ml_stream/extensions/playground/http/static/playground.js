// The playground: choose a model, write a prompt, watch the answer arrive.

import { AnswerPanel } from "./answer_panel.js";
import { call } from "./api.js";
import { createFromBlueprint, deleteAfterAsking } from "./dialogs.js";
import { byId, make, showProblem } from "./elements.js";
import { ParameterForm } from "./parameters.js";
import { predict, requestFor, takesTurns } from "./prediction.js";
import { followStatistics } from "./statistics.js";
import { Turns } from "./turns.js";

const [form, modelChoice, compareChoice, prompt, send, stop] = ["request", "model", "compare", "prompt", "send", "stop"].map(byId);
const isNarrow = matchMedia("(max-width: 62rem)"); // one column, as in playground.css
const parameters = new ParameterForm();
const turns = new Turns();
const descriptions = new Map(); // model id -> what it takes
let models = [];
let panels = [];
let choices = 0; // how often something was chosen: only the last choice is shown
let running = null; // the AbortController of the calls in flight

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!running && panels.length) sendAll();
});
form.addEventListener("input", () => showCalls());
prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});
stop.addEventListener("click", () => running?.abort());
modelChoice.addEventListener("change", () => shown(showChoice));
compareChoice.addEventListener("change", () => shown(showChoice));
byId("create").addEventListener("click", () => shown(create));
byId("create-first").addEventListener("click", () => shown(create));
byId("delete").addEventListener("click", () => shown(remove));

followStatistics();
await shown(() => loadModels());

/** Run a step; its error is shown. */
async function shown(step) {
  try {
    byId("problems").replaceChildren();
    await step();
  } catch (error) {
    showProblem(byId("problems"), error.message);
  }
}

async function loadModels(chosen = modelChoice.value) {
  ({ models } = await call("models"));
  const options = () => models.map((model) => make("option", { value: model.id }, label(model)));
  const compared = compareChoice.value;
  modelChoice.replaceChildren(...options());
  compareChoice.replaceChildren(make("option", { value: "" }, "None"), ...options());
  if (models.some(({ id }) => id === chosen)) modelChoice.value = chosen;
  if (models.some(({ id }) => id === compared)) compareChoice.value = compared;
  byId("no-models").hidden = models.length > 0;
  for (const control of [modelChoice, compareChoice, send, byId("delete")]) control.disabled = models.length === 0;
  await showChoice();
}

/** A model's name, with a part of its id where another has the same. */
function label({ id, name }) {
  return models.filter((other) => other.name === name).length > 1 ? `${name} (${id.slice(0, 6)})` : name;
}

/** The chosen models: one, or two that may be the same. */
function chosenModels() {
  const ids = [modelChoice.value, compareChoice.value];
  return ids.flatMap((id) => models.filter((model) => model.id === id));
}

/** Show what belongs to the chosen models: their parameters, and a panel for each. */
async function showChoice() {
  running?.abort();
  const choice = (choices += 1);
  const chosen = chosenModels();
  const described = await Promise.all(chosen.map(({ id }) => describe(id)));
  if (choice !== choices) return;
  panels = chosen.map((model, index) => new AnswerPanel(index ? "Second answer" : "Answer", model, carryOn));
  panels.forEach((panel, index) => (panel.canContinue = takesTurns(described[index])));
  byId("answers").replaceChildren(...panels.map(({ element }) => element));
  byId("measured").replaceChildren(...panels.map(({ measured }) => measured));
  byId("model-note").textContent = chosen.length ? noteOf(chosen[0]) : "";
  byId("conversation").hidden = !described.some(takesTurns);
  parameters.show(described);
  showCalls();
}

async function describe(id) {
  if (!descriptions.has(id)) descriptions.set(id, await call(`models/${encodeURIComponent(id)}`));
  return descriptions.get(id);
}

function noteOf({ provider, can_stream: canStream, state, description }) {
  const parts = [description, provider, canStream ? "streams" : "does not stream", state?.toLowerCase()];
  return parts.filter(Boolean).join(" · ");
}

/** The request of each panel, as the form stands. */
function requests() {
  return panels.map(({ model }) => {
    const description = descriptions.get(model.id);
    const typed = { prompt: prompt.value, ...turns.value, parameters: parameters.valuesFor(description) };
    return requestFor(model, description, typed);
  });
}

function showCalls() {
  if (running || panels.some(({ objectCount }) => objectCount)) return; // what is shown is the call of the answer
  requests().forEach((request, index) => panels[index].showCall(request));
}

async function sendAll() {
  const controller = (running = new AbortController());
  setRunning(true);
  if (isNarrow.matches) stop.parentElement.scrollIntoView(); // Stop above, the answer below it
  const all = requests();
  await Promise.all(panels.map((panel, index) => answer(panel, all[index], controller.signal)));
  if (running === controller) running = null;
  setRunning(false);
}

async function answer(panel, request, signal) {
  panel.prompt = prompt.value;
  panel.begin(request);
  try {
    for await (const piece of predict(request, signal)) panel.add(piece);
    panel.end("done");
  } catch (error) {
    if (signal.aborted) panel.end("stopped");
    else panel.end("failed", error.message);
  }
}

/** The keyboard stays where it can do something: on Stop while an answer comes, on Send after it. */
function setRunning(isRunning) {
  const [from, to] = isRunning ? [send, stop] : [stop, send];
  const hadFocus = document.activeElement === from;
  to.disabled = false;
  if (hadFocus) to.focus();
  from.disabled = true;
}

/** Make the prompt and the answer earlier turns, and let the user write the next one. */
function carryOn(panel) {
  turns.add("user", panel.prompt);
  turns.add("assistant", panel.whole);
  panel.more.hidden = true;
  byId("conversation").open = true;
  prompt.value = "";
  prompt.focus();
}

async function create() {
  const id = await createFromBlueprint();
  if (!id) return;
  await loadModels(id);
  prompt.focus();
}

async function remove() {
  const [model] = chosenModels();
  if (!model || !(await deleteAfterAsking(model))) return;
  descriptions.delete(model.id);
  await loadModels();
  modelChoice.focus();
}
