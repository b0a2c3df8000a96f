// Asks /generate-stream and shows the text as it grows: by POST and fetch, or by GET and EventSource.

const URL_OF_STREAM = "../generate-stream"; // as seen from /generate-stream/demo
const element = (id) => document.getElementById(id);
const [form, answer, error, status, send, stop] = ["form", "answer", "error", "status", "send", "stop"].map(element);

let stopStream = () => {};

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const { prompt, way } = Object.fromEntries(new FormData(form));
  begin();
  const stream = way === "fetch" ? byFetch : byEventSource;
  stopStream = stream(prompt, show, end);
});

stop.addEventListener("click", () => {
  stopStream();
  end("Stopped");
});

/** POST the prompt and read the body as it comes; return what stops it. */
function byFetch(prompt, onEvent, onEnd) {
  const controller = new AbortController();
  read().catch((problem) => {
    if (!controller.signal.aborted) onEnd("", `The stream broke off: ${problem.message}`);
  });
  return () => controller.abort();

  async function read() {
    const response = await fetch(URL_OF_STREAM, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ prompt }),
      signal: controller.signal,
    });
    if (!response.ok) return onEnd("", await reasonOf(response));
    const decoder = new TextDecoder();
    const reader = response.body.getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return onEnd("", "The stream ended before its end");
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop(); // perhaps the first half of a line
      for (const line of lines) {
        if (line.startsWith("data: ") && onEvent(line.slice("data: ".length))) return controller.abort();
      }
    }
  }
}

/** GET the stream with an EventSource, which reads the lines itself; return what stops it. */
function byEventSource(prompt, onEvent, onEnd) {
  const source = new EventSource(`${URL_OF_STREAM}?prompt=${encodeURIComponent(prompt)}`);
  source.onmessage = (event) => {
    if (onEvent(event.data)) source.close();
  };
  source.onerror = () => {
    source.close(); // or it would ask again
    onEnd("", "The stream was refused or broke off; a POST would show why");
  };
  return () => source.close();
}

/** Show the data of one event; return whether it was the last one. */
function show(data) {
  if (data === "[DONE]") {
    end(status.dataset.reason ? `Not whole: ${status.dataset.reason}` : "Done");
    return true;
  }
  const event = JSON.parse(data);
  answer.textContent = event.text;
  if (event.error) {
    end("", `${event.error} (status ${event.status})`);
    return true;
  }
  if (event.finish_reason) status.dataset.reason = event.finish_reason;
  return false;
}

function begin() {
  answer.textContent = error.textContent = "";
  delete status.dataset.reason;
  status.textContent = "The answer is coming";
  answer.setAttribute("aria-busy", "true");
  send.disabled = true;
  stop.disabled = false;
}

function end(message, problem = "") {
  status.textContent = message;
  error.textContent = problem;
  answer.setAttribute("aria-busy", "false");
  send.disabled = false;
  stop.disabled = true;
}

async function reasonOf(response) {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text);
    return `${error.reason ?? error} (status ${response.status})`;
  } catch {
    return `${text} (status ${response.status})`;
  }
}
