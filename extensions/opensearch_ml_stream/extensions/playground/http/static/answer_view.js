// One answer in the thread: its text as it arrives, reasoning and tool calls folded, its figures below it.

import { button, copy, copyable, duration, folded, make, number, showFigures } from "./elements.js";
import { Markdown } from "./markdown.js";
import { Measurements } from "./measurements.js";
import { Plot } from "./plot.js";
import { explained, problemOf } from "./problems.js";
import { curlOf } from "./snippets.js";
import { ToolCalls } from "./tool_calls.js";

const REDRAW = 50; // milliseconds between two changes of the page, however fast the tokens come
const REST = 4; // times as long as a drawing took the next one waits, so that the page has time for its user
const KEPT_OBJECTS = 2000; // raw objects, the latest
const STATES = { done: "", stopped: "Stopped", failed: "Failed" };

export class AnswerView {
  /** `thread` has `drawn(act)`, `again(view)` and `sendResults(view)`. */
  constructor(answer, thread) {
    this.answer = answer;
    this.thread = thread;
    this.state = make("span", { className: "state" });
    this.text = make("div", { className: "text" });
    this.markdown = new Markdown(this.text);
    this.thoughts = make("div", { className: "thoughts" });
    this.reasoning = make("details", { className: "part aside", hidden: true }, (this.reasoningTitle = make("summary", {}, "Reasoning")), this.thoughts);
    this.calls = new ToolCalls(answer, () => thread.sendResults(this));
    this.problem = make("div");
    this.copyButton = button("Copy", () => copy(answer.text, this.copyButton));
    this.againButton = button("Again", () => thread.again(this));
    this.copyButton.setAttribute("aria-label", `Copy the answer of ${answer.model.name}`);
    this.againButton.setAttribute("aria-label", `Ask ${answer.model.name} again`);
    this.figuresTitle = make("summary");
    this.figures = make("details", { className: "measured", hidden: true }, this.figuresTitle);
    this.figures.addEventListener("toggle", () => this.showDetails());
    this.actions = make("div", { className: "actions", hidden: true }, this.copyButton, this.againButton);
    const name = make("h2", { className: "model-name" }, answer.model.name);
    this.element = make(
      "article", { className: "answer", "aria-label": `Answer of ${answer.model.name}` },
      make("header", {}, name, this.state), this.reasoning, this.text, this.calls.element, this.problem,
      make("footer", {}, this.actions, this.figures),
    );
    this.objects = [];
    this.objectCount = 0;
    this.pendingReasoning = "";
    if (answer.outcome) this.showKept();
  }

  /** Show that the request is about to be sent; `request` is set when it is. */
  begin() {
    this.measurements = new Measurements(performance.now());
    this.state.textContent = "Waiting for the first token";
    this.element.classList.add("is-running");
    this.text.setAttribute("aria-busy", "true");
  }

  /** Take a piece of the answer; the page changes a little later, with all that came until then. */
  add(piece) {
    const { text, reasoning, signature, calls, reason, usage, own } = piece;
    if (text || reasoning || calls.length) this.measurements.add(performance.now());
    this.answer.text += text;
    this.answer.reasoning += reasoning;
    this.answer.signature += signature;
    this.markdown.append(text);
    this.pendingReasoning += reasoning;
    calls.forEach((fragment, position) => this.calls.add(fragment, position));
    this.reason = reason ?? this.reason;
    this.usage = usage ?? this.usage;
    this.own = own ?? this.own;
    this.objects.push(piece.raw);
    this.objectCount += 1;
    if (this.objects.length > 2 * KEPT_OBJECTS) this.objects.splice(0, KEPT_OBJECTS);
    this.timer ??= setTimeout(() => this.draw(), this.wait ?? REDRAW);
  }

  /** Show the end: "done", "stopped", or "failed" with an error. */
  end(outcome, error = null) {
    this.measurements.end(performance.now(), this.usage);
    this.answer.outcome = outcome;
    this.answer.problem = error && { ...explained(error), raw: error.raw || error.message, status: error.status ?? null };
    this.answer.figures = this.measured();
    this.draw();
    this.element.classList.remove("is-running");
    this.text.setAttribute("aria-busy", "false");
    this.thread.drawn(() => {
      if (error) this.problem.replaceChildren(problemOf(error, this.answer.text ? "The answer is not whole." : ""));
      this.showEnd();
    });
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = null;
    const begun = performance.now();
    this.thread.drawn(() => {
      if (this.answer.outcome) this.markdown.end();
      else this.markdown.draw();
      if (this.pendingReasoning) this.thoughts.append(this.pendingReasoning);
      this.pendingReasoning = "";
      this.reasoning.hidden = !this.answer.reasoning;
      this.calls.draw();
      if (this.measurements.first !== null) this.showState();
      this.showSummary(this.measured());
    });
    this.wait = Math.max(REDRAW, REST * (performance.now() - begun));
  }

  showState() {
    const isThinking = this.answer.reasoning && !this.answer.text && !this.answer.calls.length;
    this.reasoningTitle.textContent = isThinking ? "Reasoning …" : "Reasoning";
    const state = isThinking ? "Thinking" : "Answering";
    if (this.state.textContent !== state) this.state.textContent = state;
  }

  /** Show an answer that was kept. */
  showKept() {
    const { answer } = this;
    this.markdown.append(answer.text);
    this.markdown.end();
    this.thoughts.append(answer.reasoning);
    this.reasoning.hidden = !answer.reasoning;
    if (answer.problem) {
      const { what, advice, raw, status } = answer.problem;
      this.problem.replaceChildren(problemOf({ status, message: raw, raw, what, advice }, answer.text ? "The answer is not whole." : ""));
    }
    if (answer.figures) this.showSummary(answer.figures);
    this.showEnd();
  }

  showEnd() {
    const { outcome, figures, calls } = this.answer;
    const reason = figures?.reason;
    const cut = outcome === "done" && reason && !["stop", "tool_calls"].includes(reason);
    const cuts = { length: "Cut off: the most tokens were reached", content_filter: "Withheld by a filter" };
    this.reasoningTitle.textContent = "Reasoning";
    this.state.textContent = cut ? cuts[reason] ?? `Ended: ${reason}` : STATES[outcome];
    this.element.dataset.outcome = outcome;
    this.actions.hidden = false;
    this.copyButton.hidden = !this.answer.text;
    this.calls.end();
    if (outcome === "done" && !this.answer.text && !calls.length) this.state.textContent = "An empty answer";
    if (this.figures.open) this.showDetails();
  }

  measured() {
    const { first, ended, rate, tokens, isCounted, pieces, usage } = this.measurements;
    const details = { ...usage?.completion_tokens_details, ...usage?.prompt_tokens_details };
    return {
      first, ended, rate, isCounted, output: pieces ? tokens : null, input: usage?.prompt_tokens ?? null,
      reasoning: details.reasoning_tokens ?? null, cached: details.cached_tokens ?? null,
      cost: this.own?.spent?.cost ?? null, reason: this.reason ?? null, points: this.measurements.points(),
    };
  }

  /** The line of figures under the answer. */
  showSummary(figures) {
    const { first, rate, output, isCounted, cost } = figures;
    const parts = [
      first !== null && `${duration(first)} to the first token`,
      rate !== null && `${number(Math.round(rate * 10) / 10)} tokens/s`,
      output !== null && `${isCounted ? "" : "about "}${number(output)} ${output === 1 ? "token" : "tokens"}`,
      cost !== null && `cost ${cost}`,
    ];
    this.figuresTitle.textContent = parts.filter(Boolean).join(" · ");
    this.figures.hidden = !this.figuresTitle.textContent;
  }

  /** What is behind that line, made for those who look. */
  showDetails() {
    const figures = this.answer.figures;
    if (!this.figures.open || !figures || this.details) return;
    const { first, rate, output, isCounted, input, reasoning, cached, cost, ended, reason, points } = figures;
    const list = make("dl", { className: "figures" });
    const more = [["Reasoning tokens", reasoning], ["Cached tokens", cached]].filter(([, count]) => count);
    showFigures(list, [
      ["First token", duration(first)],
      ["Tokens a second", rate === null ? null : number(Math.round(rate * 10) / 10)],
      ["Output tokens", output === null ? null : `${isCounted ? "" : "about "}${number(output)}`],
      ["Input tokens", number(input)],
      ...more.map(([term, count]) => [term, number(count)]),
      ...(cost === null ? [] : [["Cost", String(cost)]]),
      ["Whole time", duration(ended)],
      ["End", reason],
    ]);
    this.details = make("div", { className: "inside" }, list, ...this.code());
    this.figures.append(this.details);
    if (points.length < 2) return; // it was over before there was a line to draw
    const plot = new Plot(`Tokens a second, ${this.answer.model.name}`);
    list.after(plot.element);
    plot.draw(points);
  }

  code() {
    if (!this.request) return []; // kept: neither is in the browser's database
    const raw = this.objects.slice(-KEPT_OBJECTS).map((object) => JSON.stringify(object)).join("\n");
    return [[`Raw objects (${number(this.objectCount)})`, raw], ["curl", curlOf(this.request)]]
      .map(([name, text]) => folded(name, copyable(name, make("code", {}, text))));
  }
}
