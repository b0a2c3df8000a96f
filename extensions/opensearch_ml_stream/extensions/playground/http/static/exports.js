// A conversation as a file: JSON with all of it, or Markdown to read.

import { make } from "./elements.js";

/** Let the browser save the conversation as "json" or "markdown". */
export function download(conversation, form) {
  const [text, type, end] = form === "json"
    ? [JSON.stringify(conversation, null, 2), "application/json", "json"]
    : [markdownOf(conversation), "text/markdown", "md"];
  const url = URL.createObjectURL(new Blob([text], { type }));
  const name = conversation.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "conversation";
  make("a", { href: url, download: `${name}.${end}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The conversation as Markdown. */
export function markdownOf({ title, settings, rounds }) {
  const parts = [`# ${title || "Conversation"}`];
  if (settings.system?.trim()) parts.push("## System", settings.system.trim());
  for (const { question, answers } of rounds) {
    if (!question.isResults) {
      parts.push("## You", ...(question.attachments ?? []).map(({ name }) => `[${name}]`), question.text);
    }
    for (const answer of answers) if (answer) parts.push(...answerParts(answer));
  }
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

function answerParts({ model, text, reasoning, calls, results, problem }) {
  const quoted = (lines) => lines.split("\n").map((line) => `> ${line}`).join("\n");
  return [
    `## ${model.name}`,
    reasoning && quoted(reasoning.trim()),
    text,
    ...calls.flatMap(({ id, name, arguments: json }) => [
      `Calls \`${name}\`:`, `    ${json}`, results[id] !== undefined && `Result:\n\n    ${results[id].replaceAll("\n", "\n    ")}`,
    ]),
    problem && `(${problem.what})`,
  ];
}
