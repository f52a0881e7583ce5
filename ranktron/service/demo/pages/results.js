// The list of results: names, votes on the first k, and how each one moved.

import { drawing, element, keep, number, say } from "/static/elements.js";
import { inWords } from "/static/explanation.js";

const FIRST = 10;

export function thumb(down) {
  const shape = "M3 11h4v9H3zM7 11l4-8c1.6 0 2.6 1.2 2.3 2.8L12.6 9.5H19a2 2 0 0 1 1.9 2.5l-1.6 6.4A2.2 2.2 0 0 1 17.2 20H7";
  return drawing("svg", { class: "thumb", viewBox: "0 0 24 24", "aria-hidden": "true" }, drawing("path", { d: shape, transform: down ? "rotate(180 12 12)" : null }));
}

export class Results {
  constructor(list, all, onVote) {
    this.list = list;
    this.all = all;
    this.onVote = onVote;
    this.whole = false;
    all.addEventListener("click", () => {
      this.whole = true;
      this.render();
    });
  }

  // k: how many may be voted on; judged: the votes; places: where each stood before; frozen: no votes now.
  show(shown, { k, judged, places, frozen }) {
    Object.assign(this, { shown, k, judged, places, frozen, reasons: null });
    this.render();
  }

  explain(reasons) {
    this.reasons = reasons;
    this.render();
  }

  render() {
    const visible = this.shown.slice(0, this.whole ? undefined : FIRST);
    const before = new Map([...this.list.children].map((row) => [row, row.getBoundingClientRect().top]));
    keep(this.list, visible, (each) => each.id, (each) => this.row(each), (row, each) => this.update(row, each));
    this.all.hidden = visible.length === this.shown.length;
    say(this.all, `Show all ${this.shown.length} candidates`);
    slide(this.list, before);
  }

  row(each) {
    const button = (grade, label) =>
      element("button", { type: "button", class: grade ? "up" : "down", "aria-label": `${label}: ${each.id}`, title: label, onclick: () => this.onVote(each.id, grade) }, thumb(!grade));
    return element(
      "li",
      {},
      element("span", { class: "place" }),
      element("span", { class: "title" }, element("b", {}, each.id), element("span", { class: "signature" }, each.signature)),
      element("span", { class: "votes" }, button(1, "Good result"), button(0, "Bad result")),
      element("span", { class: "under" }, each.summary),
      element(
        "details",
        {},
        element("summary", {}, element("span", { class: "kind" }, each.kind), element("span", {}), element("span", { class: "moved" }), element("span", { class: "reason" })),
        element("pre", { tabindex: 0 }, each.text),
      ),
    );
  }

  update(row, each) {
    const received = each.position <= this.k;
    const [place, , votes, , details] = row.children;
    row.classList.toggle("beyond", !received);
    say(place, String(each.position));
    votes.hidden = !received;
    for (const button of votes.children) {
      button.setAttribute("aria-pressed", String(this.judged.get(each.id) === (button.className === "up" ? 1 : 0)));
      button.disabled = this.frozen;
    }
    const [, score, moved, reason] = details.firstElementChild.children;
    say(score, `score ${number(each.score)}`);
    const by = this.places.has(each.id) ? this.places.get(each.id) - each.position : 0;
    say(moved, by ? `${by > 0 ? "▲ up" : "▼ down"} ${Math.abs(by)}` : "");
    moved.className = by < 0 ? "moved down" : "moved";
    const contributions = this.reasons?.get(each.id);
    say(reason, contributions ? inWords(contributions) : "");
  }
}

// Rows glide from where they were to where they are.
function slide(list, before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const row of list.children) {
    const old = before.get(row);
    const by = old === undefined ? 0 : old - row.getBoundingClientRect().top;
    if (by) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: 450, easing: "ease-in-out" });
    else if (old === undefined) row.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 300 });
  }
}
