// Tokens a second over time, as an SVG with its text alternative.

import { number } from "./elements.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const HEIGHT = 170; // pixels; as wide as its place
const [LEFT, RIGHT, TOP, BOTTOM] = [34, 8, 10, 20];

/** A plot that `draw(points)` fills with `[seconds, tokens a second]`. */
export class Plot {
  constructor(name) {
    this.name = name;
    this.element = svg("svg", { height: HEIGHT, role: "img", class: "plot" });
    this.points = [];
    new ResizeObserver(() => this.draw(this.points)).observe(this.element);
  }

  draw(points) {
    this.points = points;
    const width = this.element.clientWidth || 480;
    const seconds = Math.max(2, points.length ? points.at(-1)[0] + 0.125 : 0);
    const highest = Math.max(0, ...points.map(([, rate]) => rate));
    const top = roundUp(Math.max(4, highest));
    const x = (second) => LEFT + (second / seconds) * (width - LEFT - RIGHT);
    const y = (rate) => HEIGHT - BOTTOM - (rate / top) * (HEIGHT - TOP - BOTTOM);
    const parts = [0, top / 2, top].flatMap((rate) => [
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(rate), y2: y(rate), class: "grid" }),
      label(LEFT - 6, y(rate) + 3.5, number(rate), "end"),
    ]);
    parts.push(label(LEFT, HEIGHT - 5, "0 s", "start"), label(width - RIGHT, HEIGHT - 5, `${seconds.toFixed(0)} s`, "end"));
    if (points.length) {
      const line = points.map(([second, rate]) => `${x(second).toFixed(1)},${y(rate).toFixed(1)}`);
      const [first, last] = [x(points[0][0]).toFixed(1), x(points.at(-1)[0]).toFixed(1)];
      parts.push(svg("polygon", { points: `${first},${y(0)} ${line.join(" ")} ${last},${y(0)}`, class: "area" }));
      parts.push(svg("polyline", { points: line.join(" "), class: "line" }));
    }
    this.element.replaceChildren(...parts);
    this.element.setAttribute("aria-label", `${this.name}: ${describe(points, highest)}`);
  }
}

function describe(points, highest) {
  if (!points.length) return "nothing has arrived yet";
  const mean = points.reduce((sum, [, rate]) => sum + rate, 0) / points.length;
  return `${points.at(-1)[0].toFixed(0)} seconds, ${number(Math.round(mean))} on average, at most ${number(Math.round(highest))}`;
}

/** The next of 1, 2, 4, 6, 8, 10, 20, 40 ... that is not less. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 6, 8, 10].map((factor) => factor * power).find((candidate) => candidate >= value);
}

function label(x, y, text, anchor) {
  const element = svg("text", { x, y, "text-anchor": anchor });
  element.textContent = text;
  return element;
}

function svg(tag, attributes) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}
