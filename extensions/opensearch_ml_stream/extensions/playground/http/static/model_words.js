// What a model's documents say, in words: names of fields, limits, budgets, access, states.

import { make, number } from "./elements.js";

const KNOWN = {
  api: "API", aws: "AWS", id: "ID", url: "URL", iam: "IAM", openai: "OpenAI", xai: "xAI", hf: "Hugging Face",
  topp: "Top P", topk: "Top K",
};
const UNITS = { s: "second", m: "minute", h: "hour", d: "day" };
const STATES = { deployed: "Deployed", registered: "Deployed at its first call", undeployed: "Undeployed" };
const LIMITS = {
  max_streams: (value) => `${number(value)} answers at once`,
  max_streams_per_user: (value) => `${number(value)} at once for each user`,
  first_byte_timeout_seconds: (value) => `begins within ${seconds(value)}`,
  between_chunks_timeout_seconds: (value) => `silent for ${seconds(value)} at most`,
  total_timeout_seconds: (value) => `ends within ${seconds(value)}`,
};

/** "OpenAI key" for `openAI_key`, "Max tokens" for `max_tokens`. */
export function labelOf(name) {
  const words = name.split(/[_.-]+/).filter(Boolean).flatMap((word) => (KNOWN[word.toLowerCase()] ? [word] : word.split(/(?<=[a-z])(?=[A-Z])/)));
  const text = words.map((word) => KNOWN[word.toLowerCase()] ?? (/^[A-Z]+$/.test(word) ? word : word.toLowerCase())).join(" ");
  return text ? text[0].toUpperCase() + text.slice(1) : name;
}

/** A text whose parts between backticks are code, as nodes. */
export function inWords(text) {
  return text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

/** Each limit of a model as a few words. */
export function limitsInWords({ settings, rate_limiter: rate }) {
  const calls = rate?.limit ? [`${number(Number(rate.limit))} calls ${inUnit(rate.unit)}`] : [];
  const limits = Object.entries(settings?.limits ?? {}).filter(([name]) => LIMITS[name]);
  return [...calls, ...limits.map(([name, value]) => LIMITS[name](value))];
}

/** Each budget of a model as a few words. */
export function budgetsInWords({ settings }) {
  return (settings?.budgets ?? []).map(({ tokens, cost, window, per, enforcement }) => {
    const amount = tokens === undefined ? `a cost of ${number(cost)}` : `${number(tokens)} tokens`;
    const whose = per === "user" ? " for each user" : "";
    return `${amount} ${windowInWords(window)}${whose}${enforcement === "soft" ? ", which refuses nothing" : ""}`;
  });
}

/** Who may use a model; null where everyone may. */
export function accessInWords({ access }) {
  if (!access) return null;
  const whose = access.owner ? `, made by ${access.owner}` : "";
  if (access.mode === "private") return `Private${access.owner ? ` to ${access.owner}` : ""}`;
  if (access.mode === "restricted") return `Restricted to ${access.roles.join(", ")}${whose}`;
  return `Public${whose}`;
}

export function stateInWords({ state, is_enabled: isEnabled }) {
  if (isEnabled === false) return "Switched off";
  return STATES[state.toLowerCase()] ?? labelOf(state);
}

/** "a day" for `1d`, "in 7 days" for `7d`. */
function windowInWords(window) {
  const [, count, unit] = /^(\d+)([smhd])$/.exec(window) ?? [];
  if (!count) return `in ${window}`;
  return count === "1" ? `${unit === "h" ? "an" : "a"} ${UNITS[unit]}` : `in ${count} ${UNITS[unit]}s`;
}

function inUnit(unit) {
  const word = String(unit).toLowerCase().replace(/s$/, "");
  return `${word === "hour" ? "an" : "a"} ${word}`;
}

const seconds = (value) => `${value} s`;
