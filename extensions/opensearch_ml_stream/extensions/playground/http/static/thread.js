// The thread: questions and answers below each other, and the requests of the answers that are coming.

import { AnswerView } from "./answer_view.js";
import { pieces, requestFor } from "./chat_request.js";
import { messagesBefore, newAnswer } from "./conversation.js";
import { byId, copy, make } from "./elements.js";
import { QuestionView } from "./question_view.js";

const NEAR = 60; // pixels from its end: whoever reads there follows what comes
const SPOKEN = 300; // characters of an answer that a screen reader is told at its end

export class Thread {
  /** `hooks`: `models()` are those chosen, `onChange()` after each change, `onRunning(bool)`. */
  constructor(hooks) {
    this.hooks = hooks;
    this.place = byId("thread");
    this.list = byId("rounds");
    this.controller = null;
    this.views = []; // of each round, by column
    this.list.addEventListener("click", ({ target }) => {
      const block = target.closest(".copy-code")?.closest(".text .code");
      if (block) copy(block.querySelector("code").textContent, target);
    });
  }

  get isRunning() {
    return this.controller !== null;
  }

  /** Show another conversation; what comes in the one before is stopped. */
  show(conversation) {
    this.stop();
    this.conversation = conversation;
    this.views = [];
    this.list.replaceChildren();
    for (const round of conversation.rounds) {
      for (const answer of round.answers) if (answer && !answer.outcome) answer.outcome = "stopped"; // by a reload
      this.append(round);
    }
    this.place.scrollTop = this.place.scrollHeight;
  }

  /** Ask the chosen models. */
  ask(question) {
    return this.run(question, this.hooks.models());
  }

  stop() {
    this.controller?.abort();
  }

  /** Ask one model again; what follows is dropped. */
  async again(view) {
    if (this.isRunning) return;
    const [position, column] = this.placeOf(view);
    this.cut(position + 1);
    const { answers } = this.conversation.rounds[position];
    const model = this.hooks.models()[column] ?? view.answer.model;
    answers[column] = newAnswer(model);
    const fresh = new AnswerView(answers[column], this);
    view.element.replaceWith(fresh.element);
    this.views[position][column] = fresh;
    await this.answer(position, [column]);
  }

  /** Send the results that were typed for an answer's calls, and get its model's next answer. */
  async sendResults(view) {
    if (this.isRunning) return;
    const [position, column] = this.placeOf(view);
    view.calls.take();
    this.cut(position + 1);
    const { answers } = this.conversation.rounds[position];
    const models = answers.map((answer, at) => (at === column ? answer.model : null));
    await this.run({ isResults: true }, models);
  }

  async edit(position, text) {
    if (this.isRunning) return;
    const { question } = this.conversation.rounds[position];
    this.cut(position);
    await this.ask({ ...question, text });
  }

  async run(question, models) {
    const round = { question, answers: models.map((model) => model && newAnswer(model)) };
    this.conversation.rounds.push(round);
    this.append(round);
    this.place.scrollTop = this.place.scrollHeight;
    await this.answer(this.conversation.rounds.length - 1);
  }

  append(round) {
    const position = this.views.length;
    const question = new QuestionView(round.question, {
      onEdit: (text) => this.edit(position, text),
      follows: () => position < this.conversation.rounds.length - 1,
    });
    const views = round.answers.map((answer) => answer && new AnswerView(answer, this));
    const shown = views.filter(Boolean).map(({ element }) => element);
    this.views.push(views);
    this.list.append(make("li", { className: "round" }, question.element, make("div", { className: shown.length > 1 ? "answers two" : "answers" }, ...shown)));
  }

  cut(length) {
    this.conversation.rounds.splice(length);
    this.views.splice(length);
    while (this.list.children.length > length) this.list.lastChild.remove();
  }

  placeOf(view) {
    const position = this.views.findIndex((views) => views.includes(view));
    return [position, this.views[position].indexOf(view)];
  }

  /** Get the answers of a round, those of some columns alone or all. */
  async answer(position, columns = this.views[position].keys()) {
    const controller = (this.controller = new AbortController());
    const views = this.views[position];
    const asked = [...columns].filter((column) => views[column]);
    this.hooks.onRunning(true);
    this.hooks.onChange();
    say(`${asked.map((column) => views[column].answer.model.name).join(" and ")} ${asked.length > 1 ? "are" : "is"} answering`);
    await Promise.all(asked.map((column) => this.answerOne(views[column], position, column, controller.signal)));
    if (this.controller !== controller) return;
    this.controller = null;
    this.hooks.onRunning(false);
    this.hooks.onChange();
  }

  async answerOne(view, position, column, signal) {
    const { conversation } = this;
    try {
      view.begin();
      view.request = requestFor(view.answer.model, messagesBefore(conversation, position, column), conversation.settings);
      for await (const piece of pieces(view.request, signal)) view.add(piece);
      view.end("done");
    } catch (error) {
      if (signal.aborted) view.end("stopped");
      else view.end("failed", error);
    }
    say(spoken(view.answer));
  }

  /** Change the page, and stay at the end of the thread if that is what is seen. */
  drawn(act) {
    const { scrollHeight, scrollTop, clientHeight } = this.place;
    const isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    act();
    if (isAtEnd) this.place.scrollTop = this.place.scrollHeight;
    this.hooks.onChange();
  }
}

/** Let a screen reader say something: that an answer begins, and the answer when it is there, but never each token. */
function say(text) {
  byId("announcer").textContent = text;
}

function spoken({ model, text, outcome, problem, calls }) {
  if (problem) return `${model.name}: ${problem.what}`;
  const said = text.length > SPOKEN ? `${text.slice(0, SPOKEN)} … and more` : text;
  const called = calls.length ? ` It calls ${calls.map(({ name }) => name).join(", ")}.` : "";
  return `${model.name}${outcome === "stopped" ? " was stopped" : ""}: ${said}${called}`;
}
