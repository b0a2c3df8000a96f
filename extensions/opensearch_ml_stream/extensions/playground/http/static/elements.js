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

/** Put a visible alert into `place`, in the stead of the one that was there. */
export function showProblem(place, message) {
  place.replaceChildren(make("div", { role: "alert", className: "problem" }, make("p", {}, message)));
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
