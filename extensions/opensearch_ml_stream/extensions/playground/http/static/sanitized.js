// Markdown as elements. It is the only place of the page where a text becomes HTML, and nothing leaves it unsanitized.

import { Marked } from "./marked.esm.js";
import DOMPurify from "./purify.es.mjs";
import { make } from "./elements.js";

const TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h3", "hr", "li", "ol", "p", "pre", "strong",
  "table", "tbody", "td", "th", "thead", "tr", "ul",
];
const RULES = {
  ALLOWED_TAGS: TAGS,
  ALLOWED_ATTR: ["href", "start", "align", "class"],
  ADD_URI_SAFE_ATTR: ["start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  RETURN_DOM_FRAGMENT: true,
};
const LANGUAGE = /^language-([\w+#.-]{1,30})$/;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

export const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escaped(text), // shown, as the model wrote it
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`, // nothing is loaded from elsewhere
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    heading({ tokens, depth }) {
      return `<h3 class="depth-${depth}">${this.parser.parseInline(tokens)}</h3>\n`; // below the page's own, in their order
    },
  },
});

/** The elements of parsed Markdown. */
export function elementsOf(tokens) {
  const fragment = DOMPurify.sanitize(marked.parser(tokens), RULES);
  for (const link of fragment.querySelectorAll("a")) {
    link.removeAttribute("class");
    Object.assign(link, { target: "_blank", rel: "noopener noreferrer nofollow" });
  }
  for (const table of fragment.querySelectorAll("table")) {
    const scroll = make("div", { className: "scroll", tabIndex: 0, role: "group", "aria-label": "Table" });
    table.replaceWith(scroll);
    scroll.append(table);
  }
  for (const pre of fragment.querySelectorAll("pre")) {
    const { element, code } = codeBlock(LANGUAGE.exec(pre.firstElementChild?.className ?? "")?.[1]);
    code.append(pre.textContent);
    pre.replaceWith(element);
  }
  for (const code of fragment.querySelectorAll("code[class]")) code.removeAttribute("class");
  return fragment;
}

/** A block of code with its language and a button that copies it; `code` is where its text goes. */
export function codeBlock(language = "") {
  const code = make("code");
  const copy = make("button", { type: "button", className: "quiet small copy-code" }, "Copy");
  const name = language || "code";
  copy.setAttribute("aria-label", `Copy ${name}`);
  const pre = make("pre", { tabIndex: 0, role: "group", "aria-label": name }, code);
  return { element: make("div", { className: "code" }, make("div", { className: "code-title" }, make("span", {}, language), copy), pre), code };
}
