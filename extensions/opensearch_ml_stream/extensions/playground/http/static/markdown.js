// Markdown that grows. What is whole stays as it is; each drawing renders and changes the tail alone, however long the text.

import { codeBlock, elementsOf, marked } from "./sanitized.js";
import { make } from "./elements.js";

const MOST_TAIL = 4096; // characters that are rendered again at most: a longer list, table or paragraph is divided
const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/;
const LINES_OF_PART = 50; // lines of code that are laid out together

export class Markdown {
  constructor(place) {
    this.tail = make("div", { className: "tail" });
    this.place = place;
    this.reset();
  }

  /** Begin again, with nothing. */
  reset() {
    this.text = "";
    this.pending = "";
    this.left = ""; // what is drawn in the tail
    this.code = null;
    this.growing = null; // a list, a table or a paragraph whose beginning stands before the tail
    this.tail.replaceChildren();
    this.place.replaceChildren(this.tail);
  }

  /** Take a text; it is seen after the next `draw()`. */
  append(text) {
    this.text += text;
    this.pending += text;
  }

  /** Show what was taken. */
  draw() {
    if (!this.pending) return;
    this.left += this.pending.replaceAll("\r", "");
    this.pending = "";
    while (this.step());
  }

  /** Show all, as nothing more will come. */
  end() {
    this.draw();
    if (this.code && this.left) this.code.show(this.left);
    if (this.growing) this.insert(this.tail);
    this.growing = null;
    this.left = "";
  }

  /** Draw what is left; whether there is more to do. */
  step() {
    if (this.code) {
      this.left = this.code.take(this.left);
      if (!this.code.isClosed) return false;
      this.code = null;
      return this.left !== "";
    }
    const tokens = marked.lexer(this.left);
    if (tokens[0]?.type === "space") this.growing = null; // a blank line ended it
    this.freeze(tokens);
    const last = tokens.at(-1);
    if (last?.type === "code" && this.beginCode()) return true;
    if (this.left.length > MOST_TAIL) return this.divide(last);
    patch(this.tail, elementsOf(tokens));
    return false;
  }

  /** Move what nothing can change any more before the tail, and out of the tokens. */
  freeze(tokens) {
    while (tokens.at(-1)?.type === "space") tokens.pop();
    const isOpenLine = tokens.length > 1 && !tokens.at(-1).raw.includes("\n"); // may still go on what is before it
    const kept = isOpenLine && this.left.length <= MOST_TAIL ? 3 : 1; // a blank line between two blocks is one, too
    const whole = tokens.splice(0, Math.max(0, tokens.length - kept));
    if (!whole.length) return;
    this.insert(elementsOf(whole));
    this.growing = null;
    this.left = this.left.slice(whole.reduce((length, { raw }) => length + raw.length, 0));
  }

  /** Put elements before the tail; the first of them goes on with what has been divided. */
  insert(elements) {
    const first = elements.firstElementChild;
    if (this.growing && first?.localName === this.growing.localName) {
      partsOf(this.growing).append(...partsOf(first).childNodes);
      first.remove();
    }
    if (elements !== this.tail) this.place.insertBefore(elements, this.tail);
  }

  /** Show a block of code that has begun line by line; whether there is one. */
  beginCode() {
    const begun = FENCE.exec(this.left);
    if (!begun) return false;
    const [head, fence, info] = begun;
    this.code = new GrowingCode(fence, info.trim().split(/\s/)[0]);
    this.insert(this.code.element);
    this.tail.replaceChildren();
    this.left = this.left.slice(head.length);
    return true;
  }

  /** Freeze the most of a long block; whether that was possible. */
  divide(token) {
    const cut = { list: cutOfList, table: cutOfTable }[token.type] ?? cutOfText;
    const [length, again = ""] = cut(token, this.left);
    if (length <= again.length) {
      patch(this.tail, elementsOf([token]));
      return false;
    }
    const elements = elementsOf(marked.lexer(this.left.slice(0, length)));
    if (token.type === "paragraph") elements.firstElementChild?.append(this.left[length - 1] === "\n" ? make("br") : " ");
    const begun = this.growing ?? elements.firstElementChild;
    this.insert(elements);
    this.growing = begun;
    this.left = again + this.left.slice(length);
    return true;
  }
}

/** Where the parts of a long block stand: the rows of a table, the items of a list. */
function partsOf(element) {
  return element.querySelector("tbody") ?? element;
}

/** Where to cut: the number of characters, and what the rest begins with again. */
function cutOfList({ items }) {
  return [items.slice(0, -1).reduce((length, { raw }) => length + raw.length, 0)];
}

function cutOfTable(token, text) {
  const head = text.split("\n", 2).join("\n").length + 1;
  const last = text.lastIndexOf("\n", text.length - 2) + 1;
  return last > head ? [last, text.slice(0, head)] : [0];
}

function cutOfText(token, text) {
  const line = text.lastIndexOf("\n") + 1;
  return [line || text.lastIndexOf(" ") + 1 || text.length];
}

/** A block of code whose lines are appended as they come. */
class GrowingCode {
  constructor(fence, language) {
    this.isEnd = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}[ \\t]*$`);
    this.mayBeEnd = new RegExp(`^ {0,3}${fence[0]}*[ \\t]*$`);
    this.isClosed = false;
    this.lines = 0;
    ({ element: this.element, code: this.whole } = codeBlock(/^[\w+#.-]{1,30}$/.test(language) ? language : ""));
    this.part = null;
    this.isLineBegun = false;
  }

  /** Show what is certain of the text; what is left. */
  take(text) {
    let shown = "";
    let rest = text;
    for (let end = rest.indexOf("\n"); end >= 0 && !this.isClosed; end = rest.indexOf("\n")) {
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      if (!this.isLineBegun && this.isEnd.test(line)) this.isClosed = true;
      else shown = this.count(`${shown}${line}\n`);
      this.isLineBegun = false;
    }
    if (!this.isClosed && rest && (this.isLineBegun || !this.mayBeEnd.test(rest))) {
      shown += rest;
      rest = "";
      this.isLineBegun = true;
    }
    if (shown) this.show(shown);
    return rest;
  }

  count(shown) {
    this.lines += 1;
    if (this.lines % LINES_OF_PART) return shown;
    this.show(shown);
    this.part = null;
    return "";
  }

  show(text) {
    if (!this.part) this.whole.append((this.part = make("span")));
    const last = this.part.lastChild;
    if (last) last.appendData(text);
    else this.part.append(text);
  }
}

/** Make the children of an element those of another; what is the same is not touched. */
function patch(old, fresh) {
  const wanted = [...fresh.childNodes];
  let same = 0;
  while (same < wanted.length && old.childNodes[same]?.isEqualNode(wanted[same])) same += 1;
  const [before, after] = [old.childNodes[same], wanted[same]];
  if (before && after && before.nodeName === after.nodeName) {
    if (before.nodeType === Node.TEXT_NODE) before.data = after.data;
    else if (before.cloneNode().isEqualNode(after.cloneNode())) patch(before, after);
    else before.replaceWith(after);
    same += 1;
  }
  while (old.childNodes.length > same) old.lastChild.remove();
  old.append(...wanted.slice(same));
}
