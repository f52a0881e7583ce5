// The curve of observed quality: a dot for each round that was answered, their mean, and where the learner explored.

import { count, drawing, element, legend, number, onWidth } from "/static/elements.js";

const HEIGHT = 250;
const EDGE = { left: 38, right: 20, top: 12, bottom: 38 };

function ticks(low, high, most) {
  const span = Math.max(high - low, 1);
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, power * [1, 2, 5, 10].find((each) => each * power >= rough));
  const marks = [];
  for (let mark = Math.ceil(low / step) * step; mark <= high; mark += step) marks.push(mark);
  return marks;
}

export class Curve {
  constructor(parent) {
    this.points = [];
    this.chosen = null;
    this.drawing = drawing("svg", { class: "curve", role: "img", tabindex: 0, height: HEIGHT });
    this.note = element("p", { class: "note", "aria-live": "polite" });
    parent.append(this.drawing, this.note, legend(samples()));
    this.drawing.addEventListener("pointermove", (event) => this.choose(this.nearest(event)));
    this.drawing.addEventListener("pointerleave", () => this.choose(null));
    this.drawing.addEventListener("blur", () => this.choose(null));
    this.drawing.addEventListener("keydown", (event) => this.step(event));
    onWidth(parent, (width) => {
      this.width = width;
      this.draw();
    });
  }

  show(points) {
    const last = points[points.length - 1];
    const mark = points.length ? `${points.length} ${points[0].round} ${last.round} ${last.mean} ${last.value}` : "";
    if (mark === this.mark) return;
    this.mark = mark;
    this.points = points;
    this.chosen = null;
    this.draw();
  }

  x(round) {
    const { left, right } = EDGE;
    const first = this.points[0].round;
    const span = Math.max(this.points[this.points.length - 1].round - first, 1);
    return left + ((round - first) / span) * (this.width - left - right);
  }

  y(value) {
    return EDGE.top + (1 - Math.min(Math.max(value, 0), 1)) * (HEIGHT - EDGE.top - EDGE.bottom);
  }

  draw() {
    if (!this.width) return;
    const { left, right } = EDGE;
    const parts = [];
    for (const value of [0, 0.25, 0.5, 0.75, 1]) {
      parts.push(drawing("line", { class: "grid", x1: left, x2: this.width - right, y1: this.y(value), y2: this.y(value) }));
      parts.push(drawing("text", { class: "tick", x: left - 8, y: this.y(value) + 4, "text-anchor": "end" }, value));
    }
    if (this.points.length) parts.push(...this.rounds());
    else parts.push(drawing("text", { class: "nothing", x: this.width / 2, y: this.y(0.6), "text-anchor": "middle" }, "No round has been answered yet"));
    this.drawing.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.drawing.setAttribute("width", this.width);
    this.drawing.setAttribute("aria-label", this.summary());
    this.cursor = drawing("g", { class: "cursor" });
    this.drawing.replaceChildren(...parts, this.cursor);
    this.choose(this.chosen);
  }

  rounds() {
    const parts = [];
    const base = HEIGHT - EDGE.bottom;
    const first = this.points[0].round;
    const last = this.points[this.points.length - 1].round;
    ticks(first, last, Math.max(2, this.width / 110)).forEach((round, i) => {
      const text = i ? count(round) : `round ${count(round)}`;
      parts.push(drawing("text", { class: "tick", x: this.x(round), y: base + 31, "text-anchor": i ? "middle" : "start" }, text));
    });
    for (const point of this.points) {
      const x = this.x(point.round);
      if (point.explored) parts.push(drawing("line", { class: "rug", x1: x, x2: x, y1: base + 4, y2: base + 14 }));
      if (Number.isFinite(point.value)) parts.push(mark(point, x, this.y(point.value)));
    }
    const path = this.points
      .filter((point) => Number.isFinite(point.mean))
      .map((point, i) => `${i ? "L" : "M"}${this.x(point.round).toFixed(1)},${this.y(point.mean).toFixed(1)}`);
    parts.push(drawing("path", { class: "mean", d: path.join("") }));
    return parts;
  }

  summary() {
    if (!this.points.length) return "Observed quality: no round has been answered yet";
    const last = this.points[this.points.length - 1];
    const explored = this.points.filter((point) => point.explored).length;
    return `Observed quality up to round ${last.round}: mean ${number(last.mean)}, ${explored} of ${this.points.length} rounds explored`;
  }

  nearest(event) {
    if (!this.points.length) return null;
    const x = event.clientX - this.drawing.getBoundingClientRect().left;
    let best = 0;
    this.points.forEach((point, i) => {
      if (Math.abs(this.x(point.round) - x) < Math.abs(this.x(this.points[best].round) - x)) best = i;
    });
    return best;
  }

  step(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || !this.points.length) return;
    event.preventDefault();
    const last = this.points.length - 1;
    const start = this.chosen ?? last + (event.key === "ArrowLeft" ? 1 : 0);
    this.choose(Math.min(Math.max(start + steps[event.key], 0), last));
  }

  choose(place) {
    this.chosen = place;
    if (place === null) {
      this.cursor?.replaceChildren();
      this.note.textContent = "\u00a0";
      return;
    }
    const point = this.points[place];
    const x = this.x(point.round);
    const parts = [drawing("line", { x1: x, x2: x, y1: EDGE.top, y2: HEIGHT - EDGE.bottom })];
    if (Number.isFinite(point.mean)) parts.push(drawing("circle", { cx: x, cy: this.y(point.mean), r: 4 }));
    this.cursor.replaceChildren(...parts);
    const how = point.explored ? ", explored" : "";
    this.note.textContent = `Round ${count(point.round)}: quality ${number(point.value)}, mean of the last 100 ${number(point.mean)}${how}`;
  }
}

// Explored rounds differ in shape as well as in colour.
function mark(point, x, y) {
  if (!point.explored) return drawing("circle", { class: "shown", cx: x, cy: y, r: 2.6 });
  return drawing("path", { class: "explored", d: `M${x},${y - 5}l5,5l-5,5l-5,-5z` });
}

function samples() {
  return [
    ["mean of the last 100", drawing("path", { class: "mean", d: "M1,7H21" })],
    ["one round", drawing("circle", { class: "shown", cx: 11, cy: 7, r: 2.6 })],
    ["a round that explored", mark({ explored: true }, 11, 7)],
  ];
}
