// The same call as a command and as a program, by each door of the sidecar. Where callers log in, all of them read the
// names that the command line reads, too, and what is not in them they ask for.

import { pythonOf } from "./python_code.js";
import { ASKS_FOR_LOGIN, absolute } from "./sidecar_urls.js";

const ONE_LINE = 80; // characters of a body that is not broken into lines
const ML = "../_plugins/_ml";
const TEXT = "${parameters.inputs}"; // what stands for the user's text in a connector's own turns

export const LANGUAGES = { curl: "curl", python: "Python", javascript: "JavaScript" };
export const DOORS = { ml: "ML Commons", openai: "OpenAI", anthropic: "Anthropic" };

/**
 * The request `{door, path, body, isStream}` that sends a text to a model of that form by a door. `called` is what the
 * doors other than ML Commons' call the model: its name, or its id if others have that name.
 */
export function requestAt(door, model, form, prompt) {
  const { can_stream: isStream, called } = model;
  const id = encodeURIComponent(model.id);
  const givesVectors = form.kind === "embedding";
  if (door === "ml" && givesVectors) return { door, path: `${ML}/_predict/text_embedding/${id}`, body: { text_docs: [prompt] }, isStream: false };
  if (door === "ml") {
    return { door, path: `${ML}/models/${id}/_predict${isStream ? "/stream" : ""}`, body: { parameters: ownParameters(form, prompt) }, isStream };
  }
  if (givesVectors) return { door, path: "../v1/embeddings", body: { model: called, input: [prompt] }, isStream: false };
  const messages = [{ role: "user", content: prompt }];
  if (door === "anthropic") return { door, path: "../v1/messages", body: { model: called, max_tokens: 1024, messages, stream: isStream }, isStream };
  return { door, path: "../v1/chat/completions", body: { model: called, messages, stream: isStream }, isStream };
}

/** The request as code. */
export function codeOf(language, request, model) {
  return { curl: curlOf, python: pythonOf, javascript: javascriptOf }[language](request, model);
}

/** A curl command for the request, for a POSIX shell; it asks for a password that is not in the environment. */
export function curlOf({ path, body, isStream }) {
  const line = JSON.stringify(body);
  const json = line.length > ONE_LINE ? JSON.stringify(body, null, 2) : line;
  const lines = [
    `curl -sS${isStream ? "N" : ""} ${quoted(absolute(path))}`,
    ...(ASKS_FOR_LOGIN ? ['-u "${MLSTREAM_USER:?your name}${MLSTREAM_PASSWORD:+:$MLSTREAM_PASSWORD}"'] : []),
    "-H 'Content-Type: application/json'",
    ...(isStream ? ["-H 'Accept: text/event-stream'"] : []),
    `-d ${quoted(json)}`,
  ];
  return lines.join(" \\\n  ");
}

/** A module of JavaScript for the request, which needs no package. */
function javascriptOf({ door, path, body, isStream }) {
  const headers = { "Content-Type": "application/json", ...(isStream ? { Accept: "text/event-stream" } : {}) };
  const pairs = [...Object.entries(headers).map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`), ...(ASKS_FOR_LOGIN ? ["Authorization: `Basic ${login}`"] : [])];
  const ask = [
    ...(ASKS_FOR_LOGIN ? [
      "const { MLSTREAM_USER: user, MLSTREAM_PASSWORD: password } = process.env;",
      'if (!user || !password) throw new Error("Set MLSTREAM_USER and MLSTREAM_PASSWORD");',
      'const login = Buffer.from(`${user}:${password}`).toString("base64");',
    ] : []),
    `const response = await fetch(${JSON.stringify(absolute(path))}, {`,
    '  method: "POST",',
    `  headers: { ${pairs.join(", ")} },`,
    `  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),`,
    "});",
    "if (!response.ok) throw new Error(await response.text());",
  ];
  if (!isStream) return [...ask, "console.log(JSON.stringify(await response.json(), null, 2));"].join("\n");
  return [
    ...ask,
    'let rest = "";',
    "for await (const text of response.body.pipeThrough(new TextDecoderStream())) {",
    '  const lines = (rest + text).split("\\n");',
    "  rest = lines.pop();",
    '  for (const line of lines.filter((one) => one.startsWith("data: {"))) {',
    "    const event = JSON.parse(line.slice(6));",
    "    if (event.error) throw new Error(JSON.stringify(event.error));",
    `    process.stdout.write(${TEXT_OF_EVENT[door]} ?? "");`,
    "  }",
    "}",
  ].join("\n");
}

const TEXT_OF_EVENT = {
  ml: "event.inference_results[0].output[0].dataAsMap.content",
  openai: "event.choices[0]?.delta.content",
  anthropic: "event.delta?.text",
};

/** What a model's own template takes: the text alone where it has a place for one, else a conversation. */
function ownParameters({ kind, turn, parameters }, prompt) {
  const hasPlace = parameters.some(({ name, default: value }) => name === "inputs" || (value ?? "").includes(TEXT));
  if (kind === "chat" && !hasPlace) return { [turn ?? "messages"]: [{ role: "user", content: prompt }] };
  return { [kind === "chat" || !turn ? "inputs" : turn]: prompt };
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
