// Elements of the page. Text is only ever set as text; what becomes HTML goes through the sanitizer of markdown.js.

/** The element with that id. */
export const byId = (id) => document.getElementById(id);

/** A new element: `make("p", { className: "note" }, "text", child)`. Keys that begin with aria- or are `for`, `role` are attributes. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/^(aria-|for$|role$)/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** A quiet button with a text that does `act`. */
export function button(text, act, properties = {}) {
  const element = make("button", { type: "button", className: "quiet small", ...properties }, text);
  element.addEventListener("click", act);
  return element;
}

/** A labelled field, with a note below it where there is a hint; `more` stands beside its label. */
export function field(input, label, hint = "", ...more) {
  const id = `${input.id}-note`;
  if (hint) input.setAttribute("aria-describedby", id);
  const note = hint ? [make("p", { className: "note", id }, ...[hint].flat())] : [];
  return make("div", { className: "field" }, make("label", { for: input.id }, label, ...more), input, ...note);
}

/** A part that opens. */
export function folded(title, ...content) {
  return make("details", { className: "part" }, make("summary", {}, title), make("div", { className: "inside" }, ...content));
}

/** A text in a frame, with a row above it that ends with a button to copy it. */
export function copyable(name, text, ...choices) {
  const copying = button("Copy", () => copy(text.textContent, copying), { className: "quiet small", "aria-label": `Copy ${name}` });
  const pre = make("pre", { tabIndex: 0, role: "group", "aria-label": name }, text);
  return make("div", { className: "code" }, make("div", { className: "code-title" }, ...choices, copying), pre);
}

/** List these elements; the keyboard stays where it is: in its element, or in the one of the same name that took its place. */
export function list(place, elements) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  place.replaceChildren(...elements);
  if (!focused) return;
  const successor = focused.isConnected ? focused : [...place.querySelectorAll("button, select")].find((one) => nameOf(one) === nameOf(focused));
  successor?.focus({ preventScroll: true });
}

const nameOf = (element) => element.getAttribute("aria-label") ?? element.textContent;

/** Terms and values of a description list; a value of null is shown as a dash. */
export function showFigures(list, figures) {
  const groups = figures.map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, value ?? "–")));
  list.replaceChildren(...groups);
}

/** Copy a text; the button says for a moment whether that was possible. A browser allows it for HTTPS and loopback only. */
export async function copy(text, element) {
  const before = element.textContent;
  try {
    await navigator.clipboard.writeText(text);
    element.textContent = "Copied";
  } catch {
    element.textContent = "Not allowed here";
  }
  setTimeout(() => (element.textContent = before), 2000);
}

/** "1,234" for counts, "12.3" for small values, null as it is. */
export function number(value) {
  if (value === null || value === undefined) return null;
  const digits = Math.abs(value) < 100 && !Number.isInteger(value) ? 1 : 0;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** "420 ms" or "3.2 s". */
export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return null;
  return milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
}
