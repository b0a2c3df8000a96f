// The test of a model: one call of it, and whether it works, in the doctor's words.

import { call } from "./api.js";
import { duration, folded, make, number } from "./elements.js";
import { vectorsOf } from "./embeddings.js";
import { inWords, labelOf } from "./model_words.js";

const TEXT = "Why is the sky blue?";
const STEP_NAMES = { first_byte: "First byte", first_token: "First token", tls: "TLS" };
const VERDICTS = { ok: "good", warning: "could be better", failed: "failed", skipped: "left out" };

/** Call the model once; what was found, as elements. */
export function tested(model) {
  return model.gives_vectors ? testedByVector(model) : diagnosed(model);
}

async function testedByVector(model) {
  const started = performance.now();
  const [vector] = await vectorsOf(model, [TEXT]);
  return [conclusion(true, `It works: ${number(vector.length)} dimensions, in ${duration(performance.now() - started)}.`)];
}

async function diagnosed({ id }) {
  const path = `../_plugins/_ml/models/${encodeURIComponent(id)}/_diagnose`;
  const { works, steps } = await call(path, { method: "POST", body: { parameters: { inputs: TEXT } } });
  const failed = steps.find(({ verdict }) => verdict === "failed");
  const advice = steps.filter((step) => step.advice).map((step) => make("li", {}, ...inWords(`${nameOf(step)}: ${sentence(step.advice)}`)));
  const seen = failed ? steps.slice(0, steps.indexOf(failed) + 1) : steps;
  return [
    conclusion(works, works ? `It works.${firstToken(steps)}` : reasonOf(failed ?? steps.at(-1))),
    ...(advice.length ? [make("p", {}, works ? "What could be better:" : "What to do:"), make("ul", {}, ...advice)] : []),
    folded("Each step", stepTable(seen)),
  ];
}

/** When the first token came; a step's own time is what it took after the step before. */
function firstToken(steps) {
  const step = steps.find(({ name }) => name === "first_token");
  return step?.verdict === "ok" ? ` ${nameOf(step)}: ${sentence(step.summary)}` : "";
}

function stepTable(steps) {
  const rows = steps.map((step) => {
    const time = step.verdict === "skipped" ? "" : duration(step.milliseconds);
    const state = make("td", { className: `is-${step.verdict}` }, VERDICTS[step.verdict] ?? step.verdict);
    return make("tr", {}, make("th", { scope: "row" }, nameOf(step)), state, make("td", {}, time), make("td", {}, ...inWords(step.summary)));
  });
  const heads = ["Step", "Verdict", "Time", "What was seen"].map((text) => make("th", { scope: "col" }, text));
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
  return make("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Each step of the test" }, table);
}

function conclusion(works, text) {
  return make("p", { className: works ? "works" : "fails" }, make("strong", {}, ...inWords(text)));
}

const nameOf = ({ name }) => STEP_NAMES[name] ?? labelOf(name);
const reasonOf = (step) => `It does not work. ${nameOf(step)}: ${sentence(step.summary)}`;
const sentence = (text) => text.replace(/\.?$/, ".");
