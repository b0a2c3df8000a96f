// Requests to the sidecar that served this page. Paths are relative to the page, so that a proxy's prefix does no harm.

const JSON_BODY = { "Content-Type": "application/json" };
export const PREDICT = "../_plugins/_ml";

/** A refused or failed request: `message` is the reason that the sidecar gave. */
export class ApiError extends Error {
  constructor(reason, status) {
    super(status ? `${reason} (status ${status})` : reason);
    this.status = status;
  }
}

/** The JSON of a good response; ApiError for any other. */
export async function call(path, { method = "GET", body, signal, accept = "application/json" } = {}) {
  return readJson(await send(path, { method, body, signal, accept }));
}

/** The objects of a stream of server-sent events as they arrive, parsed; an event that is no JSON is an ApiError. */
export async function* events(path, { body, signal }) {
  const response = await send(path, { method: "POST", body, signal, accept: "text/event-stream" });
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    yield await readJson(response);
    return;
  }
  for await (const data of eventData(response.body)) {
    try {
      yield JSON.parse(data);
    } catch {
      throw new ApiError(`An event of the stream is no JSON: ${data.slice(0, 200)}`);
    }
  }
}

/** The data of each event (WHATWG HTML, "Interpreting an event stream"), wherever the reads are cut. */
async function* eventData(body) {
  let rest = "";
  let data = [];
  for await (const text of texts(body)) {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line === "" && data.length) {
        yield data.join("\n");
        data = [];
      }
    }
  }
}

async function* texts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

async function send(path, { method, body, signal, accept }) {
  const headers = { Accept: accept, ...(body === undefined ? {} : JSON_BODY) };
  const options = { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The sidecar does not respond: is it running, and can this browser reach it?");
  }
  if (!response.ok) throw new ApiError(reasonOf(await response.text()) || response.statusText, response.status);
  return response;
}

async function readJson(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(`The response is no JSON: ${text.slice(0, 200)}`, response.status);
  }
}

/** The reason in an error body of the sidecar, or the text as it is where it has none. */
function reasonOf(text) {
  try {
    const { error } = JSON.parse(text);
    return (typeof error === "string" ? error : error?.reason) ?? text;
  } catch {
    return text;
  }
}
