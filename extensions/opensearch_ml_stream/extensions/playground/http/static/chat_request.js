// The request of one answer to `/v1/chat/completions`, which every model takes that converses, and what comes back.

import { call, errorOf, events } from "./api.js";

const PATH = "../v1/chat/completions";
const NUMBERS = ["temperature", "top_p", "max_tokens", "seed"];

/** `{path, body, isStream}`. A SettingError names the setting that is wrong. */
export function requestFor(model, messages, settings) {
  const body = { model: model.id, messages, ...bodyOf(settings) };
  if (!model.can_stream) return { path: PATH, body, isStream: false };
  return { path: PATH, body: { ...body, stream: true, stream_options: { include_usage: true } }, isStream: true };
}

/** What the settings add to a request; SettingError for one that cannot be read. */
export function bodyOf(settings) {
  const body = {};
  for (const name of NUMBERS) {
    if (!settings[name]?.trim()) continue;
    body[name] = Number(settings[name]);
    if (Number.isNaN(body[name])) throw new SettingError(name, "is no number");
  }
  const stops = (settings.stop ?? "").split("\n").filter(Boolean);
  if (stops.length) body.stop = stops;
  if (settings.reasoning_effort) body.reasoning_effort = settings.reasoning_effort;
  const tools = read(settings, "tools");
  if (tools !== null && !Array.isArray(tools)) throw new SettingError("tools", "is no list: it begins with [ and ends with ]");
  if (tools?.length) body.tools = tools.map((tool) => (tool?.type ? tool : { type: "function", function: tool }));
  const more = read(settings, "more");
  if (more !== null && (typeof more !== "object" || Array.isArray(more))) throw new SettingError("more", "is no object: it begins with { and ends with }");
  return { ...body, ...more };
}

/** A setting that is wrong, by the name of its field. */
export class SettingError extends Error {
  constructor(name, what) {
    super(what);
    this.field = name;
    this.status = null;
  }
}

function read(settings, name) {
  const text = settings[name]?.trim();
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new SettingError(name, `is no JSON: ${error.message}`);
  }
}

/** What comes back, as it comes: `{raw, text, reasoning, signature, calls, reason, usage, own}`, all but `raw` optional. */
export async function* pieces({ path, body, isStream }, signal) {
  if (!isStream) {
    const raw = await call(path, { method: "POST", body, signal });
    yield pieceOf(raw, raw.choices?.[0]?.message);
    return;
  }
  for await (const raw of events(path, { body, signal })) {
    if (raw.error) throw errorOf(JSON.stringify(raw));
    yield pieceOf(raw, raw.choices?.[0]?.delta ?? raw.choices?.[0]?.message);
  }
}

function pieceOf(raw, message) {
  return {
    raw,
    text: message?.content ?? message?.refusal ?? "",
    reasoning: message?.reasoning_content ?? message?.reasoning ?? "",
    signature: message?.reasoning_signature ?? "",
    calls: message?.tool_calls ?? [],
    reason: raw.choices?.[0]?.finish_reason ?? null,
    usage: raw.usage ?? null,
    own: raw.opensearch_ml_stream ?? null,
  };
}
