// The weights as bars from a common zero, largest first, and how far each has drifted lately.

import { drawing, element, keep, onWidth, say, signed } from "/static/elements.js";

const HEIGHT = 14;

export class Weights {
  constructor(parent, { most = 40, explanations = {}, drift = "" } = {}) {
    this.most = most;
    this.explanations = explanations;
    this.weights = [];
    this.list = element("ol", { class: "weights" });
    this.nothing = element("p", { class: "nothing" });
    this.more = element("p", { class: "note" });
    this.drift = element("span", {}, drift);
    this.legend = legend(this.drift);
    parent.append(this.nothing, this.legend, this.list, this.more);
    onWidth(parent, () => this.draw());
  }

  // With a version, the drift shown is what happened since the version before, else what the service says it was over a
  // window of so many updates.
  show(weights, { version = null, window = null } = {}) {
    if (window !== null) say(this.drift, window === 1 ? "change by the last update" : `change over the last ${window} updates`);
    if (version !== null) {
      if (version !== this.version) this.before = new Map(this.weights.map((each) => [each.feature, each.weight]));
      this.version = version;
      weights = weights.map((each) => ({ ...each, drift: each.weight - (this.before.get(each.feature) ?? each.weight) }));
    } else if (weights.every((each) => each.drift === each.weight)) {
      weights = weights.map((each) => ({ ...each, drift: 0 })); // there is nothing yet to drift away from
    }
    this.weights = weights;
    this.draw();
  }

  draw() {
    const sorted = [...this.weights].sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
    const shown = sorted.slice(0, this.most);
    const reach = Math.max(...sorted.map((each) => Math.max(Math.abs(each.weight), Math.abs(each.weight - (each.drift || 0)))), 1e-12);
    this.nothing.hidden = sorted.some((each) => each.weight !== 0);
    say(this.nothing, sorted.length ? "All weights are zero: nothing has been learnt yet." : "A ranker of this kind has no weights for its features.");
    this.list.hidden = !this.nothing.hidden;
    this.legend.hidden = this.list.hidden || !sorted.some((each) => each.drift);
    keep(this.list, shown, (each) => each.feature, (each) => this.row(each), (row, each) => update(row, each, reach));
    const left = sorted.length - shown.length;
    this.more.hidden = left === 0 || this.list.hidden;
    say(this.more, `and ${left} smaller ones`);
  }

  row(each) {
    const zero = drawing("line", { class: "zero", y1: 0, y2: HEIGHT });
    const bar = drawing("rect", { y: 1, height: HEIGHT - 2, rx: 2 });
    const halo = drawing("path", { class: "halo" });
    const drift = drawing("path", { class: "drift" });
    return element(
      "li",
      { title: this.explanations[each.feature] },
      element("span", { class: "feature" }, each.feature),
      drawing("svg", { class: "bar", height: HEIGHT, "aria-hidden": "true" }, bar, zero, halo, drift),
      element("span", { class: "value" }),
      element("span", { class: "change" }),
    );
  }
}

function update(row, each, reach) {
  const [, picture, value, change] = row.children;
  const [bar, zero, halo, drift] = picture.children;
  const width = picture.clientWidth || 120;
  const half = width / 2;
  const x = (weight) => half + (weight / reach) * (half - 4);
  const start = x(each.weight - (each.drift || 0));
  const end = x(each.weight);
  bar.setAttribute("class", each.weight < 0 ? "negative" : "positive");
  bar.setAttribute("x", Math.min(half, end));
  bar.setAttribute("width", Math.max(Math.abs(end - half), 0));
  zero.setAttribute("x1", half);
  zero.setAttribute("x2", half);
  const head = Math.sign(end - start) * Math.min(4, Math.abs(end - start));
  const visible = Math.abs(end - start) >= 1.5;
  for (const arrow of [halo, drift]) arrow.setAttribute("d", visible ? `M${start},7H${end}M${end - head},3.5L${end},7L${end - head},10.5` : "");
  say(value, signed(each.weight));
  say(change, each.drift ? signed(each.drift) : "");
}

function legend(text) {
  const arrow = drawing("svg", { width: 22, height: 14, viewBox: "0 0 22 14", "aria-hidden": "true", class: "bar" }, drawing("path", { class: "drift", d: "M1,7H20M16,3.5L20,7L16,10.5" }));
  return element("ul", { class: "legend" }, element("li", {}, arrow, text));
}
