// One answer: its text as it arrives, reasoning and tool calls apart, figures, raw objects, and the call as code.

import { duration, make, number, showFigures, showProblem } from "./elements.js";
import { Measurements } from "./measurements.js";
import { Plot } from "./plot.js";
import { curlOf, pythonOf } from "./snippets.js";

const REDRAW = 50; // milliseconds between two changes of the page, however fast the tokens come
const REDRAW_RAW = 500; // milliseconds between two changes of the raw objects, which may be many
const KEPT_OBJECTS = 2000; // raw objects, the latest

export class AnswerPanel {
  constructor(name, model, onContinue) {
    this.model = model;
    this.state = make("span", { className: "state", role: "status" });
    this.text = make("div", { className: "text", tabIndex: 0, role: "region", "aria-label": name, "aria-live": "polite" });
    this.thoughts = make("div", { className: "text" });
    this.reasoning = make("details", { className: "part aside", hidden: true, open: true }, make("summary", {}, "Reasoning"), this.thoughts);
    this.calls = make("div", { className: "calls", hidden: true });
    this.problem = make("div");
    this.more = make("button", { type: "button", className: "quiet small", hidden: true }, "Continue the conversation");
    this.more.addEventListener("click", () => onContinue(this));
    this.raw = code("Raw objects");
    this.curl = code("curl");
    this.python = code("Python");
    this.raw.element.addEventListener("toggle", () => this.showRaw());
    const title = make("header", {}, make("span", { className: "kind" }, name), make("h2", { className: "model-name" }, model.name), this.state);
    this.element = make(
      "article", { className: "card answer" },
      title, this.reasoning, this.text, this.calls, this.problem, this.more,
      make("div", { className: "beside" }, this.raw.element, this.curl.element, this.python.element),
    );
    this.plot = new Plot(`Tokens a second, ${model.name}`);
    this.figures = make("dl", { className: "figures" });
    this.measured = make("div", { className: "answer-figures" }, make("h3", {}, model.name), this.plot.element, this.figures);
    this.reset(new Measurements(0));
  }

  /** Empty the panel for a request that is about to be sent. */
  begin(request) {
    this.reset(new Measurements(performance.now()));
    this.showCall(request);
    this.state.textContent = "Waiting for the first token";
    this.element.classList.add("is-running");
    this.text.setAttribute("aria-busy", "true"); // screen readers read the answer when it is whole, not by token
  }

  /** Take a piece of the answer; the page changes a little later, with all that came until then. */
  add(piece) {
    if (piece.text || piece.reasoning || piece.toolCalls?.length) this.measurements.add(performance.now());
    this.pending.text += piece.text ?? "";
    this.pending.reasoning += piece.reasoning ?? "";
    for (const fragment of piece.toolCalls ?? []) this.addCall(fragment);
    this.objects.push(piece.raw);
    this.objectCount += 1;
    if (this.objects.length > 2 * KEPT_OBJECTS) this.objects.splice(0, KEPT_OBJECTS);
    if (piece.ending) this.ending = piece.ending;
    this.timer ??= setTimeout(() => this.draw(), REDRAW);
  }

  /** Show the end: "done", "stopped" or "failed" with a reason. */
  end(outcome, reason = "") {
    this.measurements.end(performance.now(), this.ending?.usage);
    this.draw();
    const why = this.ending?.finish_reason;
    const done = why && why !== "stop" ? `Not the whole answer: ${why}` : "Done";
    this.state.textContent = { done: why === "tool_calls" ? "Done: tool calls" : done, stopped: "Stopped", failed: "Failed" }[outcome];
    this.element.classList.remove("is-running");
    this.element.dataset.outcome = outcome;
    this.text.setAttribute("aria-busy", "false");
    this.more.hidden = outcome !== "done" || !this.whole.trim() || !this.canContinue;
    if (reason) showProblem(this.problem, reason, this.whole ? "The answer is not whole." : "No answer.");
  }

  /** Show the call as code, of what is in the form or of what was sent. */
  showCall(request) {
    this.request = request;
    this.curl.show(curlOf(request));
    this.python.show(pythonOf(request, this.model));
  }

  reset(measurements) {
    clearTimeout(this.timer);
    this.timer = null;
    this.measurements = measurements;
    this.pending = { text: "", reasoning: "" };
    this.whole = "";
    this.objects = [];
    this.objectCount = 0;
    this.rawShown = -Infinity;
    this.ending = null;
    this.toolCalls = new Map();
    for (const place of [this.text, this.thoughts, this.calls, this.problem]) place.replaceChildren();
    this.reasoning.hidden = this.calls.hidden = this.more.hidden = true;
    delete this.element.dataset.outcome;
    this.draw();
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = null;
    const isAtEnd = this.text.scrollHeight - this.text.scrollTop - this.text.clientHeight < 30;
    if (this.pending.text) this.text.append(this.pending.text);
    if (this.pending.reasoning) this.thoughts.append(this.pending.reasoning);
    this.whole += this.pending.text;
    this.reasoning.hidden = !this.thoughts.hasChildNodes();
    this.pending = { text: "", reasoning: "" };
    if (isAtEnd) this.text.scrollTop = this.text.scrollHeight;
    for (const call of this.toolCalls.values()) call.shown.textContent = call.arguments;
    this.calls.hidden = this.toolCalls.size === 0;
    if (this.measurements.first !== null) this.state.textContent = "Answering";
    this.showFigures();
    if (this.measurements.ended !== null || performance.now() - this.rawShown > REDRAW_RAW) this.showRaw();
  }

  addCall({ index, id, name, arguments: text }) {
    let call = this.toolCalls.get(index);
    if (!call) {
      call = { arguments: "", shown: make("pre") };
      this.toolCalls.set(index, call);
      const title = make("h3", {}, "Tool call ", make("code", {}, name ?? `${index}`));
      this.calls.append(make("div", { className: "call", title: id ?? "" }, title, call.shown));
    }
    call.arguments += text ?? "";
  }

  showFigures() {
    const { first, ended, rate, tokens, isCounted, usage, pieces } = this.measurements;
    const output = pieces ? `${isCounted ? "" : "about "}${number(tokens)}` : null;
    const more = [["Reasoning tokens", usage?.reasoning_tokens], ["Cached tokens", usage?.cached_tokens]];
    showFigures(this.figures, [
      ["First token (TTFT)", duration(first)],
      ["Tokens a second", rate === null ? null : number(Math.round(rate * 10) / 10)],
      ["Output tokens", output],
      ["Input tokens", number(usage?.input_tokens)],
      ...more.filter(([, count]) => count).map(([term, count]) => [term, number(count)]),
      ["Whole time", duration(ended)],
      ["End", this.ending?.finish_reason],
    ]);
    this.plot.draw(this.measurements.points());
  }

  showRaw() {
    this.rawShown = performance.now();
    this.raw.title.textContent = this.objectCount ? `Raw objects (${number(this.objectCount)})` : "Raw objects";
    if (!this.raw.element.open) return; // made only for those who look
    this.raw.show(this.objects.slice(-KEPT_OBJECTS).map((object) => JSON.stringify(object)).join("\n"));
  }
}

/** A part that opens, with text to copy. */
function code(name) {
  const text = make("pre", { tabIndex: 0 });
  const copy = make("button", { type: "button", className: "quiet small", "aria-label": `Copy ${name}` }, "Copy");
  const title = make("summary", {}, name);
  copy.addEventListener("click", async () => {
    copy.textContent = (await copied(text.textContent)) ? "Copied" : "Press Ctrl + C";
    if (copy.textContent !== "Copied") getSelection().selectAllChildren(text);
    setTimeout(() => (copy.textContent = "Copy"), 2000);
  });
  const element = make("details", { className: "part code" }, title, make("div", { className: "inside" }, copy, text));
  return { element, title, show: (value) => (text.textContent = value) };
}

/** Whether the clipboard took the text: a browser allows it for HTTPS and loopback only. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
