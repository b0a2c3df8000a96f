// The fields of a model's limits, budgets and prices, and what was changed in them.

import { field, folded, make } from "./elements.js";

const LIMITS = [
  ["max_streams", "Answers at once", "of all users together", 1],
  ["max_streams_per_user", "Answers at once for each user", "who logs in", 1],
  ["first_byte_timeout_seconds", "Seconds until it begins", "counted from the call to the provider", "any"],
  ["between_chunks_timeout_seconds", "Seconds of silence", "between two pieces of an answer", "any"],
  ["total_timeout_seconds", "Seconds for a whole answer", "counted from the call to the provider", "any"],
];
const PRICES = [["input", "Input"], ["output", "Output"], ["cached_input", "Input from a cache"], ["cache_write", "Input to a cache"]];
const WINDOW = /^(\d+)([smhd])$/;

export class LimitFields {
  constructor(settings) {
    this.before = settings;
    this.limits = LIMITS.map(([name, label, hint, step]) => numberField(`limit-${name}`, name, label, hint, settings.limits?.[name], step));
    this.prices = PRICES.map(([name, label]) => numberField(`price-${name}`, name, label, "", settings.prices?.[name], "any"));
    this.budgets = make("ol", { className: "budgets", "aria-label": "Budgets" });
    for (const budget of settings.budgets ?? []) this.budgets.append(budgetRow(budget));
    const add = make("button", { type: "button", className: "quiet small" }, "Add a budget");
    add.addEventListener("click", () => {
      const row = budgetRow({ window: "1d" });
      this.budgets.append(row);
      row.querySelector("input").focus();
    });
    this.elements = [
      folded("Limits", note("An empty field does not limit."), grid(this.limits)),
      folded(
        "Budgets", note("What calls may spend in a time, which begins with a multiple of it: a day at midnight (UTC)."),
        this.budgets, add,
        make("h3", {}, "Prices of a million tokens"), note("Budgets of money need them, in their currency."), grid(this.prices),
      ),
    ];
  }

  /** The members of the model's settings that were changed; null for one that is empty now. */
  changes() {
    const now = { limits: valuesOf(this.limits), budgets: [...this.budgets.children].map(budgetOf), prices: valuesOf(this.prices) };
    const kept = Object.entries(now).map(([name, value]) => [name, Object.keys(value).length ? value : null]);
    return Object.fromEntries(kept.filter(([name, value]) => !isSame(value, this.before[name] ?? null)));
  }
}

function numberField(id, name, label, hint, value, step) {
  const input = make("input", { id, type: "number", min: 0, step, inputMode: "decimal", value: value ?? "" });
  return { name, input, element: field(input, label, hint) };
}

/** One budget as a sentence of fields. */
function budgetRow({ tokens, cost, window, per = "model", enforcement = "hard" }) {
  const [, count, unit] = WINDOW.exec(window) ?? ["", "1", "d"];
  const amount = make("input", { type: "number", min: 0, step: "any", required: true, value: tokens ?? cost ?? "", "aria-label": "Amount", name: "amount" });
  const remove = make("button", { type: "button", className: "quiet small" }, "Remove");
  const row = make(
    "li", { className: "budget" },
    amount, choice("of", "Of what", [["tokens", "tokens"], ["cost", "money"]], cost === undefined ? "tokens" : "cost"), make("span", {}, "in"),
    make("input", { type: "number", min: 1, step: 1, required: true, value: count, "aria-label": "Length of the time", name: "count" }),
    choice("unit", "Unit of the time", [["s", "seconds"], ["m", "minutes"], ["h", "hours"], ["d", "days"]], unit),
    choice("per", "For whom", [["model", "for all together"], ["user", "for each user"]], per),
    choice("enforcement", "When it is spent", [["hard", "then refuse"], ["soft", "then only say so"]], enforcement),
    remove,
  );
  remove.addEventListener("click", () => {
    const next = row.parentElement.nextElementSibling; // the button that adds one
    row.remove();
    next.focus();
  });
  return row;
}

function budgetOf(row) {
  const value = (name) => row.querySelector(`[name=${name}]`).value;
  const budget = { [value("of")]: Number(value("amount")), window: `${value("count")}${value("unit")}` };
  if (value("per") !== "model") budget.per = value("per");
  if (value("enforcement") !== "hard") budget.enforcement = value("enforcement");
  return budget;
}

function choice(name, label, options, value) {
  const select = make("select", { name, "aria-label": label }, ...options.map(([key, text]) => make("option", { value: key }, text)));
  select.value = value;
  return select;
}

function valuesOf(fields) {
  const given = fields.filter(({ input }) => input.value !== "");
  return Object.fromEntries(given.map(({ name, input }) => [name, Number(input.value)]));
}

/** Whether two values are the same JSON, whatever the order of their members, and with what stands by default left out. */
function isSame(one, other) {
  const members = ([name, value]) => value !== null && !(name === "per" && value === "model") && !(name === "enforcement" && value === "hard");
  const sorted = (value) => {
    if (Array.isArray(value)) return value.map(sorted);
    if (value === null || typeof value !== "object") return value;
    return Object.entries(value).filter(members).sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, sorted(inner)]);
  };
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

const grid = (fields) => make("div", { className: "fields" }, ...fields.map(({ element }) => element));
const note = (text) => make("p", { className: "note" }, text);
