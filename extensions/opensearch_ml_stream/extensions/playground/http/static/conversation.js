// A conversation, as it is kept: plain objects, no page.
//
// {id, title, changed, models: [{id, name}], settings: {...}, rounds: [round]}
// round:  {question: {text, attachments} | {isResults: true}, answers: [answer | null]}
// answer: {model, text, reasoning, signature, calls: [{id, name, arguments}], results: {id: text}, outcome, problem, figures}

const TITLE = 60; // characters

/** A conversation of nobody yet. */
export function newConversation(models, settings) {
  return { id: crypto.randomUUID?.() ?? String(Math.random()).slice(2), title: "", changed: Date.now(), models, settings, rounds: [] };
}

/** An answer that is about to come. */
export function newAnswer(model) {
  return { model, text: "", reasoning: "", signature: "", calls: [], results: {}, outcome: null, problem: null, figures: null };
}

/** The title that a first question gives. */
export function titleOf({ text, attachments = [] }) {
  const line = text.trim().split("\n", 1)[0] || attachments[0]?.name || "Conversation";
  return line.length > TITLE ? `${line.slice(0, TITLE - 1).trimEnd()}…` : line;
}

/** Whether all the calls of an answer have results. */
export function hasResults({ calls, results }) {
  return calls.every(({ id }) => id in results);
}

/** The messages, as OpenAI has them, that come before the answer of a round in one column of the thread. */
export function messagesBefore(conversation, end, column) {
  const messages = [];
  const { system } = conversation.settings;
  if (system?.trim()) messages.push({ role: "system", content: system });
  conversation.rounds.slice(0, end + 1).forEach(({ question, answers }, position) => {
    const answer = position < end ? said(answers, column) : null;
    if (position < end && !answer) return; // a question that nothing came back for is asked no more
    if (!question.isResults) messages.push({ role: "user", content: contentOf(question) });
    if (answer) messages.push(...messagesOf(answer));
  });
  return messages;
}

/** The answer that belongs to a column; the first one where that column was not asked. */
function said(answers, column) {
  const answer = answers[column] ?? (column < answers.length ? null : answers[0]);
  return answer && (answer.text || answer.calls.length) ? answer : null;
}

function messagesOf({ text, reasoning, signature, calls, results }) {
  const called = calls.length > 0 && hasResults({ calls, results });
  const message = { role: "assistant", content: text || (called ? null : "") };
  if (called) message.tool_calls = calls.map(({ id, name, arguments: json }) => ({ id, type: "function", function: { name, arguments: json } }));
  if (signature || (called && reasoning)) message.reasoning_content = reasoning;
  if (signature) message.reasoning_signature = signature;
  if (!called) return text ? [message] : [];
  return [message, ...calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: results[id] }))];
}

function contentOf({ text, attachments = [] }) {
  if (!attachments.length) return text;
  const parts = attachments.map(({ name, type, url }) =>
    type.startsWith("image/") ? { type: "image_url", image_url: { url } } : { type: "file", file: { filename: name, file_data: url } });
  return text ? [...parts, { type: "text", text }] : parts;
}
