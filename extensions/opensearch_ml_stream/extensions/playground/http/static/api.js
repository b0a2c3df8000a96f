// Requests to the sidecar that served this page. Paths are relative to the page, so that a proxy's prefix does no harm.

const JSON_BODY = { "Content-Type": "application/json" };
const OWN_COMMENT = "opensearch_ml_stream "; // of a stream: what OpenAI's API has no place for

/** A refused or failed request: `message` is the reason that the sidecar gave, `raw` all that it said. */
export class ApiError extends Error {
  constructor(reason, { status = null, raw = "", retryAfter = null, providerStatus = null, isBroken = false } = {}) {
    super(reason);
    Object.assign(this, { status, raw, retryAfter, providerStatus, isBroken });
  }
}

/** The JSON of a good response; ApiError for any other. */
export async function call(path, { method = "GET", body, signal } = {}) {
  return readJson(await send(path, { method, body, signal, accept: "application/json" }));
}

/**
 * The objects of a stream of server-sent events as they arrive, parsed, and `{opensearch_ml_stream}` for its comments.
 * A whole response is one object. ApiError for an event that is no JSON, and for a stream that ends before `[DONE]`.
 */
export async function* events(path, { body, signal }) {
  const response = await send(path, { method: "POST", body, signal, accept: "text/event-stream" });
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    yield await readJson(response);
    return;
  }
  for await (const { data, comment } of eventsOf(response.body)) {
    if (data === "[DONE]") return;
    if (comment === undefined) yield parsed(data);
    else if (comment.startsWith(OWN_COMMENT)) yield { opensearch_ml_stream: parsed(comment.slice(OWN_COMMENT.length)) };
  }
  throw new ApiError("The stream broke off before its end", { isBroken: true });
}

/** An ApiError of an error body, of OpenSearch's or of OpenAI's form; the text as it is where it has neither. */
export function errorOf(text, { status = null, retryAfter = null, statusText = "" } = {}) {
  let error = text;
  try {
    error = JSON.parse(text).error ?? text;
  } catch {
    // a proxy's page, for instance
  }
  const reason = typeof error === "string" ? error : error.message ?? error.reason ?? text;
  const providerStatus = error.provider_status ?? null;
  return new ApiError(reason || statusText, { status: status ?? error.status ?? null, raw: text, retryAfter, providerStatus });
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new ApiError("An event of the stream is no JSON", { raw: data.slice(0, 2000), isBroken: true });
  }
}

/** `{data}` of each event and `{comment}` of each comment (WHATWG HTML, "Interpreting an event stream"). */
async function* eventsOf(body) {
  let rest = "";
  let data = [];
  for await (const text of texts(body)) {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line.startsWith(":")) yield { comment: line.slice(1).trimStart() };
      else if (line === "" && data.length) {
        yield { data: data.join("\n") };
        data = [];
      }
    }
  }
}

async function* texts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The connection broke off", { raw: String(error), isBroken: true });
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
    throw new ApiError("The sidecar does not respond", { raw: String(error) });
  }
  if (response.ok) return response;
  const { status, statusText } = response;
  throw errorOf(await response.text(), { status, statusText, retryAfter: response.headers.get("retry-after") });
}

async function readJson(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError("The response is no JSON", { status: response.status, raw: text.slice(0, 2000) });
  }
}
