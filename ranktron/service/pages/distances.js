// How far the values of each feature are from the training data, farthest first, and what has changed.

import { count, drawing, element, keep, number, onWidth, say, share } from "/static/elements.js";

const HEIGHT = 14;
const LARGE = 0.25; // from which a population stability index counts as large
const MOST = 10;

export class Distances {
  constructor(parent) {
    this.features = [];
    this.note = element("p", { class: "note" });
    this.list = element("ol", { class: "distances" });
    this.more = element("p", { class: "note" });
    parent.append(this.note, this.list, this.more);
    onWidth(parent, () => this.draw());
  }

  show({ reference, lists, needed, features }) {
    say(this.note, told(reference, lists, needed, features));
    this.features = [...features].sort((a, b) => b.distance - a.distance);
    this.draw();
  }

  draw() {
    const shown = this.features.slice(0, MOST);
    const reach = Math.max(2 * LARGE, ...shown.map((each) => each.distance));
    keep(this.list, shown, (each) => each.feature, row, (node, each) => update(node, each, reach));
    const left = this.features.length - shown.length;
    this.more.hidden = left === 0;
    say(this.more, `and ${left} nearer ones`);
  }
}

function told(reference, lists, needed, features) {
  if (reference === null) return "This ranker was not trained on data: its first 200 lists will be what later ones are compared with.";
  if (!features.length) return `${count(lists)} of ${needed} lists have been compared with its ${reference}.`;
  return `Population stability index: the last ${count(lists)} lists against its ${reference}. From ${LARGE} on a change is large.`;
}

function row() {
  const picture = drawing("svg", { class: "bar", height: HEIGHT, "aria-hidden": "true" }, drawing("rect", { x: 0, y: 1, height: HEIGHT - 2, rx: 2 }), drawing("line", { class: "zero", y1: 0, y2: HEIGHT }));
  return element("li", {}, element("span", { class: "feature" }), picture, element("span", { class: "value" }), element("span", { class: "change" }), element("span", { class: "left" }));
}

function update(node, each, reach) {
  const [feature, picture, value, change, left] = node.children;
  const [bar, limit] = picture.children;
  const width = picture.clientWidth || 120;
  bar.setAttribute("width", (each.distance / reach) * width);
  bar.setAttribute("class", each.left ? "negative" : "positive");
  for (const end of ["x1", "x2"]) limit.setAttribute(end, (LARGE / reach) * width);
  say(feature, each.feature);
  say(value, number(each.distance));
  say(change, each.missing ? `${share(each.missing)} missing` : "");
  say(left, each.left);
  left.hidden = !each.left;
}
