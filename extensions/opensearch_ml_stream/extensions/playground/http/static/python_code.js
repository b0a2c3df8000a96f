// A call of the sidecar as lines of Python, with the client library that its door has.

import { ASKS_FOR_LOGIN, absolute } from "./sidecar_urls.js";

const ONE_LINE = 80; // characters of a value that is not broken into lines
const PASSWORDS = [
  'user = os.environ.get("MLSTREAM_USER") or input("User: ")',
  'password = os.environ.get("MLSTREAM_PASSWORD") or getpass()',
];
const imports = (...others) => [...(ASKS_FOR_LOGIN ? ["import os", "from getpass import getpass", ""] : []), ...others, ""];

/** Lines of Python for the request. */
export function pythonOf(request, model) {
  return { ml: pythonOfML, openai: pythonOfOpenAI, anthropic: pythonOfAnthropic }[request.door](request, model);
}

function pythonOfML({ path, body, isStream }, model) {
  const url = new URL(absolute(path));
  const client = [
    ...(ASKS_FOR_LOGIN ? PASSWORDS : []),
    `client = OpenSearch(${pythonLiteral(url.href.slice(0, url.href.indexOf("/_plugins/")))}${ASKS_FOR_LOGIN ? ", http_auth=(user, password)" : ""})`,
  ];
  if (!isStream) {
    return [
      ...imports("from opensearchpy import OpenSearch"),
      ...client,
      `body = ${pythonLiteral(body)}`,
      `print(client.transport.perform_request("POST", ${pythonLiteral(url.pathname.slice(url.pathname.indexOf("/_plugins/")))}, body=body))`,
    ].join("\n");
  }
  return [
    ...imports("from opensearchpy import OpenSearch", "from opensearch_ml_stream.client import predict_stream"),
    ...client,
    `parameters = ${pythonLiteral(body.parameters)}`,
    `for chunk in predict_stream(client, ${pythonLiteral(model.id)}, parameters):`,
    '    print(chunk.text, end="", flush=True)',
  ].join("\n");
}

function pythonOfOpenAI({ path, body, isStream }) {
  const lines = pythonOfLibrary("openai", "OpenAI", absolute("../v1"));
  if (path.endsWith("/embeddings")) return [...lines, ...pythonCall("response = client.embeddings.create", body), "print(response.data[0].embedding)"].join("\n");
  const { stream, ...asked } = body;
  const call = pythonCall(`${isStream ? "stream" : "response"} = client.chat.completions.create`, isStream ? { ...asked, stream } : asked);
  if (!isStream) return [...lines, ...call, "print(response.choices[0].message.content)"].join("\n");
  return [
    ...lines, ...call,
    "for chunk in stream:",
    "    if chunk.choices:",
    '        print(chunk.choices[0].delta.content or "", end="", flush=True)',
  ].join("\n");
}

function pythonOfAnthropic({ body: { stream: _, ...asked }, isStream }) {
  const lines = pythonOfLibrary("anthropic", "Anthropic", absolute(".."));
  if (!isStream) return [...lines, ...pythonCall("message = client.messages.create", asked), "print(message.content[0].text)"].join("\n");
  const [first, ...others] = pythonCall("with client.messages.stream", asked);
  return [
    ...lines,
    first, ...others.slice(0, -1), ") as stream:",
    "    for text in stream.text_stream:",
    '        print(text, end="", flush=True)',
  ].join("\n");
}

/** The client of a library at this sidecar; a user's login goes in place of the key that it wants. */
function pythonOfLibrary(library, client, base) {
  const url = pythonLiteral(base.replace(/\/$/, ""));
  const own = ASKS_FOR_LOGIN ? ", http_client=DefaultHttpxClient(auth=(user, password))" : "";
  return [
    ...imports(`from ${library} import ${client}${ASKS_FOR_LOGIN ? ", DefaultHttpxClient" : ""}`),
    ...(ASKS_FOR_LOGIN ? PASSWORDS : []),
    `client = ${client}(base_url=${url}, api_key="none"${own})`,
  ];
}

function pythonCall(call, body) {
  return [`${call}(`, ...Object.entries(body).map(([name, value]) => `    ${name}=${pythonLiteral(value, "    ")},`), ")"];
}

/** A value as Python writes it; the strings of JSON are strings of Python too. */
function pythonLiteral(value, indent = "") {
  const inner = `${indent}    `;
  const block = (open, items, close) => {
    const line = `${open}${items.join(", ")}${close}`;
    if (line.length <= ONE_LINE && !line.includes("\n")) return line;
    return `${open}\n${items.map((item) => `${inner}${item},\n`).join("")}${indent}${close}`;
  };
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return block("[", value.map((item) => pythonLiteral(item, inner)), "]");
  if (typeof value === "object") {
    return block("{", Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${pythonLiteral(item, inner)}`), "}");
  }
  return JSON.stringify(value);
}
