// Why a document stands where it stands: what each feature adds to its score, and what puts it above the next.

import { drawing, element, number, signed } from "/static/elements.js";

const FEATURES = 6;
const DOCUMENTS = 5;
const WIDTH = 96;

function byFeature(contributions) {
  return new Map(Object.entries(contributions));
}

function strongest(contributions) {
  return [...contributions].filter(([, value]) => value !== 0).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
}

// "exact_name +0.41, is_method −0.10": the features that speak loudest.
export function inWords(contributions, most = 3) {
  const loudest = strongest(byFeature(contributions)).slice(0, most);
  return loudest.map(([feature, value]) => `${feature} ${signed(value, 2)}`).join(", ") || "nothing yet: all weights are zero";
}

function bar(value, reach) {
  const half = WIDTH / 2;
  const length = reach > 0 ? (Math.abs(value) / reach) * (half - 2) : 0;
  return drawing(
    "svg",
    { class: "bar", width: WIDTH, height: 10, viewBox: `0 0 ${WIDTH} 10`, "aria-hidden": "true" },
    drawing("rect", { class: value < 0 ? "negative" : "positive", x: value < 0 ? half - length : half, y: 1, width: length, height: 8, rx: 2 }),
    drawing("line", { class: "zero", x1: half, x2: half, y1: 0, y2: 10 }),
  );
}

function why(document, explored) {
  if (document.lead === null) return null;
  if (explored && document.lead <= 0) return "Above the next at random: this round explored.";
  if (document.because === null) return null;
  const reasons = strongest(byFeature(document.because));
  if (!reasons.length) return "Equal to the next: it came first in the request.";
  const told = (sign) => reasons.filter(([, value]) => value * sign > 0).slice(0, 3).map(([feature, value]) => `${feature} ${signed(value)}`).join(", ");
  const despite = told(-1);
  return `Above the next by ${number(document.lead)}: ${told(1)}${despite ? `, despite ${despite}` : ""}`;
}

function box(document, answer, reach) {
  const loudest = strongest(byFeature(document.contributions || {}));
  const left = loudest.length - FEATURES;
  const reason = why(document, answer.explored);
  const rows = loudest.slice(0, FEATURES).map(([feature, value]) =>
    element("tr", {}, element("th", { scope: "row" }, feature), element("td", {}, bar(value, reach)), element("td", { class: "value" }, signed(value))),
  );
  return element(
    "li",
    {},
    element("div", { class: "line" }, element("b", {}, document.id), element("span", { class: "value" }, number(document.score))),
    rows.length ? element("table", {}, element("tbody", {}, rows)) : element("p", { class: "note" }, document.contributions ? "No feature contributes: the weights or the values are zero." : "Scores of this kind of ranker are not sums over features."),
    left > 0 ? element("p", { class: "note" }, `and ${left} smaller`) : null,
    reason ? element("p", { class: "why" }, reason) : null,
  );
}

export function explanation(answer) {
  const documents = answer.documents;
  const reach = Math.max(...documents.flatMap((each) => Object.values(each.contributions || {}).map(Math.abs)), 0);
  const boxes = documents.map((each) => box(each, answer, reach));
  const list = element("ol", { class: "explanation" }, boxes.slice(0, DOCUMENTS));
  if (boxes.length > DOCUMENTS) {
    const all = () => list.replaceChildren(...boxes);
    list.append(element("li", {}, element("button", { type: "button", class: "plain", onclick: all }, `Show all ${boxes.length}`)));
  }
  return list;
}
