// Embeddings: what a model makes of several texts, and how alike they are.

import { ApiError, call } from "./api.js";
import { field, make, number } from "./elements.js";
import { showError } from "./problems.js";

const MAX_TEXTS = 12; // of a matrix that can be read
const SHOWN_NUMBERS = 6; // of a vector
const SHOWN_LETTERS = 40; // of a text at the head of a row
const STEPS = 5; // of the colours
const EXAMPLES = "A kitten sleeps in the sun.\nA young cat takes a nap.\nThe market fell by three percent.";

/** The vector of each text, by one call of the model. */
export async function vectorsOf(model, texts) {
  const path = `../_plugins/_ml/_predict/text_embedding/${encodeURIComponent(model.id)}`;
  const response = await call(path, { method: "POST", body: { text_docs: texts } });
  const outputs = response.inference_results?.flatMap(({ output }) => output ?? []) ?? [];
  const vectors = outputs.map(({ data }) => data).filter(Array.isArray);
  if (vectors.length !== texts.length) {
    throw new ApiError(`The model gave ${vectors.length} vectors for ${texts.length} texts: ${JSON.stringify(response).slice(0, 200)}`);
  }
  return vectors;
}

/** The cosine of the angle between two vectors; null where one has no direction. */
function cosine(one, other) {
  const dot = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0);
  const lengths = Math.sqrt(dot(one, one) * dot(other, other));
  return lengths ? dot(one, other) / lengths : null;
}

/** A form for texts, and below it their vectors and how alike they are. */
export function embeddingsForm(model) {
  const id = `texts-${model.id}`;
  const texts = make("textarea", { id, rows: 4, value: EXAMPLES });
  const send = make("button", { type: "submit", className: "small" }, "Compare");
  const state = make("p", { className: "note", role: "status" });
  const result = make("div", { className: "vectors" });
  const form = make(
    "form", { className: "embeddings" },
    field(texts, "Texts, one a line", `At most ${MAX_TEXTS}; all of them are one call.`),
    make("div", { className: "row" }, send, state), result,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.disabled) return;
    send.disabled = true;
    const lines = texts.value.split("\n").map((line) => line.trim()).filter(Boolean).slice(0, MAX_TEXTS);
    try {
      if (!lines.length) throw new ApiError("Write at least one text.");
      const vectors = await vectorsOf(model, lines);
      state.textContent = `${number(vectors[0].length)} dimensions`;
      result.replaceChildren(vectorTable(lines, vectors), ...(lines.length > 1 ? [matrix(lines, vectors)] : []));
    } catch (error) {
      state.textContent = "";
      showError(result, error);
    }
    send.disabled = false;
  });
  return form;
}

function vectorTable(texts, vectors) {
  const rows = vectors.map((vector, index) => {
    const more = vector.length > SHOWN_NUMBERS ? ", …" : "";
    const first = vector.slice(0, SHOWN_NUMBERS).map((value) => short(value, 4)).join(", ");
    return make("tr", {}, head("row", `${index + 1}. ${cut(texts[index])}`), make("td", {}, `[${first}${more}]`));
  });
  return table("First values of each vector", [head("col", "Text"), head("col", "First values")], rows);
}

/** How alike the texts are, two by two: 1 for the same direction, 0 for nothing in common. */
function matrix(texts, vectors) {
  const heads = [head("col", "Cosine"), ...texts.map((text, index) => head("col", `${index + 1}`))];
  const rows = vectors.map((vector, index) => {
    const cells = vectors.map((other) => {
      const value = cosine(vector, other);
      const cell = make("td", { className: "cosine" }, value === null ? "–" : short(value, 2));
      cell.dataset.step = Math.max(0, Math.min(STEPS, Math.round((value ?? 0) * STEPS)));
      return cell;
    });
    return make("tr", {}, head("row", `${index + 1}. ${cut(texts[index])}`), ...cells);
  });
  return table("Similarity (cosine): 1 is the same direction, 0 has nothing in common", heads, rows);
}

function table(caption, heads, rows) {
  const content = make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows));
  return make("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": caption }, content);
}

const head = (scope, text) => make("th", { scope }, text);
const cut = (text) => (text.length > SHOWN_LETTERS ? `${text.slice(0, SHOWN_LETTERS)}…` : text);
const short = (value, digits) => String(Number(Number(value).toFixed(digits)));
