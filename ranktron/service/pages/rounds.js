// The last rounds: what was asked, shown and said; a click explains.

import { get, rankerPath } from "/static/api.js";
import { count, duration, element, keep, number, say } from "/static/elements.js";
import { explanation } from "/static/explanation.js";

const SHOWN = 5;

export class Rounds {
  constructor(parent) {
    this.ranker = null;
    this.list = element("ol", { class: "rounds" });
    this.nothing = element("p", { class: "nothing" }, "No rankings yet.");
    parent.append(this.nothing, this.list);
  }

  show(ranker, recent) {
    if (ranker !== this.ranker) this.list.replaceChildren();
    this.ranker = ranker;
    this.nothing.hidden = recent.length > 0;
    const newest = [...recent].sort((a, b) => b.round - a.round);
    keep(this.list, newest, (each) => each.round, (each) => this.row(each), update);
  }

  row(each) {
    const details = element("div", { class: "details", hidden: true });
    const button = element(
      "button",
      { type: "button", "aria-expanded": "false", onclick: () => this.toggle(each, button, details) },
      element("span", { class: "number" }, count(each.round)),
      element("span", { class: "query" }, asText(each.query)),
      element("span", { class: "badge" }),
      element("span", { class: "outcome" }),
    );
    return element("li", {}, button, element("p", { class: "shown-list" }), details);
  }

  async toggle(each, button, details) {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    details.hidden = open;
    if (open) return;
    details.replaceChildren(element("p", { class: "note" }, "Loading…"));
    try {
      details.replaceChildren(explanation(await get(rankerPath(this.ranker, "explain", each.round))));
    } catch (error) {
      details.replaceChildren(element("p", { class: "note" }, error.message));
    }
  }
}

function asText(query) {
  if (query === null || query === undefined || query === "") return "(no query)";
  return typeof query === "string" ? query : JSON.stringify(query);
}

function update(row, each) {
  const [button, shown] = row.children;
  const [, , badge, outcome] = button.children;
  say(badge, each.explored ? "explored" : "");
  badge.hidden = !each.explored;
  say(outcome, each.answered ? (Number.isFinite(each.delay) ? `feedback after ${duration(each.delay)}` : "feedback") : "open");
  outcome.classList.toggle("waiting", !each.answered);
  const labels = each.labels || {};
  const mark = JSON.stringify([each.answered, labels]);
  if (shown.dataset.mark === mark) return;
  shown.dataset.mark = mark;
  shown.replaceChildren(
    ...(each.ranking || []).slice(0, SHOWN).map((document) => {
      const label = labels[document.id];
      const grade = label === undefined ? null : element("b", { class: "grade", title: "label" }, number(label, Number.isInteger(label) ? 0 : 1));
      return element("span", { class: "document", title: `score ${number(document.score)}` }, document.id, grade);
    }),
  );
}
