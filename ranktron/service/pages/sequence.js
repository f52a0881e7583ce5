// The curve of a confidence sequence: the difference of two arms after each user, and the band that holds at all times.

import { count, drawing, element, legend, onWidth, signed } from "/static/elements.js";

const HEIGHT = 230;
const EDGE = { left: 52, right: 20, top: 14, bottom: 38 };

export class Sequence {
  constructor(parent) {
    this.points = [];
    this.drawing = drawing("svg", { class: "curve", role: "img", height: HEIGHT });
    this.legend = legend(samples());
    parent.append(this.drawing, this.legend);
    onWidth(parent, (width) => {
      this.width = width;
      this.draw();
    });
  }

  show(pair) {
    const last = pair.curve[pair.curve.length - 1];
    const mark = `${pair.first} ${pair.second} ${pair.tolerance} ${last ? `${last.users} ${last.mean}` : ""}`;
    if (mark === this.mark) return;
    Object.assign(this, { mark, pair, points: pair.curve });
    this.legend.lastElementChild.hidden = !pair.tolerance;
    this.draw();
  }

  // Few users are as wide as many: certainty grows with the logarithm of their number.
  x(users) {
    const last = Math.log(Math.max(this.points[this.points.length - 1].users, 2));
    return EDGE.left + (Math.log(users) / last) * (this.width - EDGE.left - EDGE.right);
  }

  y(value) {
    const place = (this.reach - Math.min(Math.max(value, -this.reach), this.reach)) / (2 * this.reach);
    return EDGE.top + place * (HEIGHT - EDGE.top - EDGE.bottom);
  }

  // Half of the height of the drawing: where the band has been in the last third of the drawing.
  scale() {
    const late = this.points.slice(Math.floor((2 * this.points.length) / 3));
    const widest = Math.max(0.02, this.pair?.tolerance || 0, ...late.flatMap((point) => [Math.abs(point.low), Math.abs(point.high)]));
    const power = 10 ** Math.floor(Math.log10(widest));
    this.reach = [1, 2, 5, 10].map((step) => step * power).find((step) => step >= widest);
  }

  draw() {
    if (!this.width) return;
    this.scale();
    const parts = [];
    const end = this.width - EDGE.right;
    for (const share of [-1, -0.5, 0, 0.5, 1]) {
      const value = share * this.reach;
      parts.push(drawing("line", { class: share ? "grid" : "zero", x1: EDGE.left, x2: end, y1: this.y(value), y2: this.y(value) }));
      parts.push(drawing("text", { class: "tick", x: EDGE.left - 8, y: this.y(value) + 4, "text-anchor": "end" }, signed(value, this.reach < 0.1 ? 3 : 2)));
    }
    if (this.points.length) parts.push(...this.band());
    else parts.push(drawing("text", { class: "nothing", x: this.width / 2, y: this.y(0.5 * this.reach), "text-anchor": "middle" }, "No user has counted yet"));
    this.drawing.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    this.drawing.setAttribute("width", this.width);
    this.drawing.setAttribute("aria-label", this.summary());
    this.drawing.replaceChildren(...parts);
  }

  band() {
    const at = (point, value) => `${this.x(point.users).toFixed(1)},${this.y(value).toFixed(1)}`;
    const upper = this.points.map((point) => at(point, point.high));
    const lower = this.points.map((point) => at(point, point.low)).reverse();
    const mean = this.points.map((point) => at(point, point.mean));
    const parts = [drawing("path", { class: "band", d: `M${upper.join("L")}L${lower.join("L")}Z` })];
    if (this.pair.tolerance) {
      const y = this.y(-this.pair.tolerance);
      parts.push(drawing("line", { class: "limit", x1: EDGE.left, x2: this.width - EDGE.right, y1: y, y2: y }));
    }
    parts.push(drawing("path", { class: "mean", d: `M${mean.join("L")}` }));
    const last = this.points[this.points.length - 1].users;
    for (let users = 1; users <= last; users *= 10) {
      const text = users === 1 ? "1 user" : count(users);
      parts.push(drawing("text", { class: "tick", x: this.x(users), y: HEIGHT - 14, "text-anchor": users === 1 ? "start" : "middle" }, text));
    }
    return parts;
  }

  summary() {
    const last = this.points[this.points.length - 1];
    if (!last) return "Confidence sequence: no user has counted yet";
    return `Confidence sequence after ${last.users} users: ${signed(last.mean)}, between ${signed(last.low)} and ${signed(last.high)}`;
  }
}

function samples() {
  return [
    ["difference so far", drawing("path", { class: "mean", d: "M1,7H21" })],
    ["where the true difference is, at all times at once", drawing("path", { class: "band", d: "M1,1H21V13H1Z" })],
    ["tolerance of the guard", drawing("path", { class: "limit", d: "M1,7H21" })],
  ];
}
