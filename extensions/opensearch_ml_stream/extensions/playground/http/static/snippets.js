// The same call as a command and as a program. Where callers log in, it is by names that the command line reads, too.

const ONE_LINE = 80; // characters of a body that is not broken into lines
const ASKS_FOR_LOGIN = document.documentElement.dataset.login === "asked";

/** A curl command for the request, for a POSIX shell. */
export function curlOf({ path, body, isStream }) {
  const line = JSON.stringify(body);
  const json = line.length > ONE_LINE ? JSON.stringify(body, null, 2) : line;
  const lines = [
    `curl -sS${isStream ? "N" : ""} ${quoted(absolute(path))}`,
    ...(ASKS_FOR_LOGIN ? ['-u "$MLSTREAM_USER:$MLSTREAM_PASSWORD"'] : []),
    "-H 'Content-Type: application/json'",
    ...(isStream ? ["-H 'Accept: text/event-stream'"] : []),
    `-d ${quoted(json)}`,
  ];
  return lines.join(" \\\n  ");
}

const IMPORTS = [...(ASKS_FOR_LOGIN ? ["import os", ""] : []), "from opensearchpy import OpenSearch"];
const LOGIN = ASKS_FOR_LOGIN ? ', http_auth=(os.environ["MLSTREAM_USER"], os.environ["MLSTREAM_PASSWORD"])' : "";

/** Lines of Python for the request, with opensearch-py and the client of this package. */
export function pythonOf({ path, body, isStream }, model) {
  const url = new URL(absolute(path));
  const base = pythonLiteral(url.href.slice(0, url.href.indexOf("/_plugins/")));
  if (!isStream) {
    return [
      ...IMPORTS, "",
      `client = OpenSearch(${base}${LOGIN})`,
      `body = ${pythonLiteral(body)}`,
      `print(client.transport.perform_request("POST", ${pythonLiteral(url.pathname.slice(url.pathname.indexOf("/_plugins/")))}, body=body))`,
    ].join("\n");
  }
  return [
    ...IMPORTS,
    "from opensearch_ml_stream.client import predict_stream", "",
    `client = OpenSearch(${base}${LOGIN})`,
    `parameters = ${pythonLiteral(body.parameters)}`,
    `for chunk in predict_stream(client, ${pythonLiteral(model.id)}, parameters):`,
    '    print(chunk.text, end="", flush=True)',
  ].join("\n");
}

const absolute = (path) => new URL(path, document.baseURI).href;
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

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
