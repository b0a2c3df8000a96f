// The page: its parts, and how they work together.

import { Composer } from "./composer.js";
import { newConversation, titleOf } from "./conversation.js";
import { ConversationList } from "./conversation_list.js";
import { ConversationStore } from "./conversation_store.js";
import { byId } from "./elements.js";
import { ModelChoice } from "./models.js";
import { mountModels } from "./models_panel.js";
import { recall, remember } from "./preferences.js";
import { showError } from "./problems.js";
import { askForSettings, countOf } from "./settings.js";
import { followSide } from "./side.js";
import { followStatistics } from "./statistics.js";
import { followTheme } from "./theme.js";
import { Thread } from "./thread.js";
import { showUser } from "./user.js";

const SAVE = 1000; // milliseconds between two writings of a conversation that grows
const CONVERSES = document.documentElement.dataset.converses !== "no";
const OFF = "This page speaks with models by OpenAI's API, which is switched off here: the setting opensearch_ml_stream.extensions.openai_api is false.";

const store = new ConversationStore();
const models = new ModelChoice(() => shown(showChoice));
const thread = new Thread({ models: () => models.chosen.map(({ id, name, can_stream }) => ({ id, name, can_stream })), onChange: keep, onRunning });
const composer = new Composer((question) => shown(() => send(question)), () => thread.stop());
const list = new ConversationList(store, { open: (id) => shown(() => open(id)), renamed, deleted });
const side = followSide();
let conversation = null;
let saving = null; // the timer of the next writing

const modelsPanel = mountModels(byId("models-panel"), { changed: () => shown(loadModels), use });
followTheme();
followStatistics();
addEventListener("hashchange", () => showPart());
byId("create-first").addEventListener("click", () => modelsPanel.create());
addEventListener("pagehide", () => save());
byId("new-conversation").addEventListener("click", () => begin());
byId("parameters").addEventListener("click", () => shown(changeSettings));
show(newConversation([], recall("settings", {})));
showPart();
await Promise.all([attempted(loadModels).then(() => attempted(resume)), attempted(showUser)]);
document.documentElement.dataset.ready = "yes";

/** Run a step that the user asked for; its error is shown in the stead of earlier ones. */
function shown(step) {
  byId("problems").replaceChildren();
  return attempted(step);
}

async function attempted(step) {
  try {
    await step();
  } catch (error) {
    showError(byId("problems"), error);
  }
}

async function loadModels() {
  await models.load();
  byId("no-models").hidden = models.all.length > 0;
  showChoice();
}

/** Show what the chosen models are, and whether they can be asked. */
function showChoice() {
  const { chosen } = models;
  byId("compare").hidden = models.all.length < 1;
  const silent = chosen.filter(({ gives_vectors: givesVectors }) => givesVectors);
  composer.isUsable = CONVERSES && chosen.length > 0 && silent.length === 0;
  byId("model-note").textContent = CONVERSES ? noteOf(chosen, silent) : OFF;
  showWelcome();
}

function noteOf(chosen, silent) {
  if (silent.length) return `${silent[0].name} makes embeddings: it answers nothing. Choose another model.`;
  return chosen.map(({ name, description, can_stream: canStream }) =>
    [description, canStream ? "" : `${name} answers in one piece.`].filter(Boolean).join(" ")).filter(Boolean).join(" · ");
}

function showWelcome() {
  byId("welcome").hidden = conversation.rounds.length > 0 || models.all.length === 0;
}

/** Begin a conversation, with the settings of the last one. */
function begin() {
  leave();
  remember("conversation", null);
  show(newConversation([], recall("settings", {})));
  if (!matchMedia("(pointer: coarse)").matches) byId("prompt").focus();
}

async function open(id) {
  const kept = await store.load(id);
  if (!kept) return;
  leave();
  goOn(kept);
}

function goOn(kept) {
  remember("conversation", kept.id);
  show(kept);
  models.choose(kept.models);
  showChoice();
}

/** Go on where the page was left. */
async function resume() {
  const kept = await store.load(recall("conversation", ""));
  if (kept) goOn(kept);
}

/** Begin a conversation with a model. */
function use(id) {
  begin();
  models.choose([id]);
  showChoice();
}

function leave() {
  if (thread.isRunning) thread.stop();
  save();
  side.close();
  if (location.hash !== "#models") return;
  location.hash = "#chat";
  showPart(); // at once: whoever begins writes
}

function show(next) {
  conversation = next;
  thread.show(conversation);
  showSettings();
  showWelcome();
  list.show(conversation.id).catch(() => {}); // the next writing says what is wrong
}

async function send(question) {
  if (!conversation.rounds.length) conversation.title ||= titleOf(question);
  conversation.models = models.chosen.map(({ id }) => id);
  byId("welcome").hidden = true;
  await thread.ask(question);
}

function onRunning(isRunning) {
  composer.setRunning(isRunning);
  if (isRunning) remember("conversation", conversation.id);
  save();
}

/** Write the conversation soon. */
function keep() {
  saving ??= setTimeout(save, SAVE);
}

async function save() {
  clearTimeout(saving);
  saving = null;
  if (!conversation?.rounds.length) return;
  const { id } = conversation;
  conversation.changed = Date.now();
  try {
    await store.save(conversation);
    await list.show(conversation.id);
  } catch (error) {
    showError(byId("problems"), error, `Not kept (${id.slice(0, 4)}).`);
  }
}

function renamed(id, title) {
  if (conversation.id === id) conversation.title = title;
  list.show(conversation.id);
}

function deleted(id) {
  if (conversation.id === id) {
    conversation.rounds = [];
    begin();
  } else list.show(conversation.id);
}

async function changeSettings() {
  const settings = await askForSettings(conversation.settings);
  if (!settings) return;
  conversation.settings = settings;
  remember("settings", settings);
  showSettings();
  keep();
}

function showSettings() {
  const count = countOf(conversation.settings);
  byId("parameter-count").textContent = count ? ` ${count} set` : "";
}

/** Show the part of the page that the address names. */
function showPart() {
  const isModels = location.hash === "#models";
  byId("models-panel").hidden = !isModels;
  for (const id of ["chat-panel", "choices", "parameters"]) byId(id).hidden = isModels;
  byId("part-title").textContent = isModels ? "Models" : "Chat";
  byId("part-title").classList.toggle("unseen", !isModels);
  for (const [id, isCurrent] of [["models-tab", isModels], ["chat-tab", !isModels]]) {
    if (isCurrent) byId(id).setAttribute("aria-current", "page");
    else byId(id).removeAttribute("aria-current");
  }
  side.close();
}
