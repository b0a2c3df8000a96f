// A prediction: the request that the form describes, and what comes back for it.

import { ApiError, PREDICT, call, events } from "./api.js";

const TEXT = "${parameters.inputs}"; // what stands for the user's text in a connector's own turns
const USER = { role: "user", content: TEXT };
const CONVERSATIONS = ["messages", "contents"];
const SHOWN_NUMBERS = 8; // of an embedding

/**
 * The request `{path, body, isStream}` for a model, its description and what was typed.
 * The shape of a turn is that of the connector's own: strings, Converse's blocks or Gemini's parts.
 */
export function requestFor(model, description, { prompt, system, turns, parameters }) {
  const id = encodeURIComponent(model.id);
  if (description.kind === "embedding") {
    return { path: `${PREDICT}/_predict/text_embedding/${id}`, body: { text_docs: [prompt] }, isStream: false };
  }
  const body = { parameters: { ...parameters, ...userTurn(description, prompt, system, turns) } };
  return { path: `${PREDICT}/models/${id}/_predict${model.can_stream ? "/stream" : ""}`, body, isStream: model.can_stream };
}

/** Whether the model takes a conversation, not only one text. */
export function takesTurns(description) {
  return conversationOf(description) !== null;
}

/** What comes back, as it comes: `{raw, text?, reasoning?, toolCalls?, ending?}`. ApiError if it fails or breaks off. */
export async function* predict({ path, body, isStream }, signal) {
  if (!isStream) {
    const raw = await call(path, { method: "POST", body, signal });
    yield { raw, text: wholeText(raw), ending: {} };
    return;
  }
  for await (const raw of events(path, { body, signal })) {
    const piece = pieceOf(raw);
    yield piece;
    if (piece.error) throw new ApiError(piece.error, raw.status ?? raw.error.status);
    if (piece.ending) return;
  }
  throw new ApiError("The stream broke off before its end");
}

function userTurn(description, prompt, system, turns) {
  const { kind, turn: own, parameters } = description;
  const conversation = conversationOf(description);
  const names = parameters.map(({ name }) => name);
  const isSystemApart = names.includes("system");
  if (conversation && (turns.length || (system && !isSystemApart) || !hasPlaceholder(parameters))) {
    const { name, turn } = conversation;
    const all = [...turns, { role: "user", text: prompt }];
    if (system && !isSystemApart) all.unshift({ role: "system", text: system });
    const messages = all.map(({ role, text }) => filled(turn, name === "contents" && role === "assistant" ? "model" : role, text));
    return { [name]: messages, ...(system && isSystemApart ? { system } : {}) };
  }
  const apart = conversation && system && isSystemApart ? { system } : {};
  if (kind === "other" && !prompt.trim()) return apart;
  if (conversation || !own) return { [hasPlaceholder(parameters) || kind !== "prompt" ? "inputs" : "prompt"]: prompt, ...apart };
  return { [own]: prompt, ...apart };
}

/** Whether the connector puts one text into its own turns; a caller who may not see its values sees the name. */
function hasPlaceholder(parameters) {
  return parameters.some(({ name, default: value }) => name === "inputs" || (value ?? "").includes(TEXT));
}

/** The parameter of the turns and the shape of one; null for a model that takes one text. */
function conversationOf({ kind, turn: own, parameters }) {
  for (const { name, default: value } of parameters) {
    const turn = name === own || CONVERSATIONS.includes(name) ? lastTurn(value ?? "") : null;
    if (turn) return { name, turn };
  }
  return kind === "chat" ? { name: own ?? CONVERSATIONS[0], turn: USER } : null;
}

function lastTurn(text) {
  try {
    const turn = JSON.parse(text).at(-1);
    return turn?.role && JSON.stringify(turn).includes(TEXT) ? turn : null;
  } catch {
    return null; // a default that is a template of another shape
  }
}

/** The turn with its role and its text in place of those that the connector has. */
function filled(turn, role, text) {
  const fill = (value) => {
    if (typeof value === "string") return value.replace(TEXT, () => text);
    if (Array.isArray(value)) return value.map(fill);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner)]));
  };
  return { ...fill(turn), role };
}

function pieceOf(raw) {
  if (raw.error) return { raw, error: typeof raw.error === "string" ? raw.error : raw.error.reason };
  const output = raw.inference_results?.[0]?.output?.[0]?.dataAsMap;
  if (!output) throw new ApiError(`An object of the stream has no output: ${JSON.stringify(raw).slice(0, 200)}`);
  const piece = { raw, text: output.content ?? "", reasoning: output.reasoning ?? "", toolCalls: output.tool_calls ?? [] };
  if (output.is_last) piece.ending = output;
  return piece;
}

/** The text of a whole response: a string, the numbers of an embedding in short, or else its JSON. */
function wholeText(raw) {
  const outputs = raw.inference_results?.flatMap((result) => result.output ?? []) ?? [];
  const texts = outputs.map(({ data, shape, dataAsMap }) => {
    if (Array.isArray(data)) return numbersInShort(data, shape);
    return typeof dataAsMap?.response === "string" ? dataAsMap.response : JSON.stringify(dataAsMap, null, 2);
  });
  return texts.length ? texts.join("\n\n") : JSON.stringify(raw, null, 2);
}

function numbersInShort(data, shape) {
  const more = data.length > SHOWN_NUMBERS ? ", …" : "";
  return `${(shape ?? [data.length]).join(" × ")} numbers: [${data.slice(0, SHOWN_NUMBERS).join(", ")}${more}]`;
}
