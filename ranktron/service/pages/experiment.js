// An experiment: its verdict in words, its arms, a curve for each pair of them, the guard, the apprentice's agreement.

import { count, element, keep, number, say, share, signed } from "/static/elements.js";
import { Sequence } from "/static/sequence.js";

const METHODS = {
  split: "each user sees one arm",
  "team-draft": "every page mixes the arms: team draft",
  optimized: "every page mixes the arms: optimized interleaving",
  "sample-scored": "every page mixes the arms: sample-only scored",
  apprentice: "users see the client's own order",
};

export class Experiment {
  constructor(parent) {
    this.verdict = element("p", { class: "verdict", role: "status" });
    this.facts = element("dl", { class: "facts" });
    this.pairs = element("div", { class: "grid" });
    parent.append(this.verdict, this.facts, this.pairs);
    this.curves = new Map();
  }

  show(experiment) {
    this.verdict.dataset.verdict = experiment.state;
    say(this.verdict, `${NAMES[experiment.state] || experiment.state}: ${experiment.why}.`);
    const make = ([name, , hint]) => element("div", { title: hint }, element("dt", {}, name), element("dd", {}), element("dd", { class: "under" }));
    keep(this.facts, headline(experiment), ([name]) => name, make, (node, [, value, , under]) => {
      say(node.children[1], value);
      say(node.children[2], under || "");
    });
    const key = (pair) => `${pair.first} ${pair.second}`;
    for (const pair of experiment.pairs) pair.tolerance = experiment.guard?.tolerance;
    keep(this.pairs, experiment.pairs, key, (pair) => this.panel(key(pair), pair), (node, pair) => {
      say(node.children[1], sentence(pair));
      this.curves.get(key(pair)).show(pair);
    });
  }

  panel(key, pair) {
    const place = element("div", {});
    this.curves.set(key, new Sequence(place));
    return element("section", { class: "panel wide" }, element("h2", {}, `${pair.second} against ${pair.first}`), element("p", { class: "note" }), place);
  }
}

const NAMES = { running: "Running", decided: "Decided", ended: "Ended", "went back": "Went back" };

function sentence(pair) {
  const [low, high] = pair.interval;
  const by = `${signed(pair.difference)} so far, and truly between ${signed(low)} and ${signed(high)} with an error of at most ${number(pair.level, 3)}`;
  const decided = pair.better ? ` ${pair.better} is better: that was certain after ${count(pair.decided_after)} users.` : " Not decided yet.";
  return `${pair.second} minus ${pair.first}: ${by}.${decided}`;
}

function headline(all) {
  const facts = [
    ["Users", count(all.users), "Users that have counted, each once", METHODS[all.definition.method]],
    ["Pages", count(all.rounds), "Pages shown", `${count(all.open)} open`],
    ["Shown to all", all.shows || "–", "The arm that everyone sees, once that is decided", all.shows ? "to everyone" : all.winner ? "POST .../promote does it" : "not decided"],
  ];
  for (const arm of all.arms.filter((each) => each.share !== null)) {
    const of = `${share(arm.share)} of users, ${count(arm.users)} counted`;
    facts.push([arm.arm, number(arm.mean), `Mean ${all.definition.metric} of its users`, of]);
  }
  if (all.guard) {
    const { evidence, run_length, alarm, promotable } = all.guard;
    const note = alarm ? "alarm" : promotable ? "may be promoted" : "not yet to be promoted";
    facts.push(["Guard", alarm ? "✗ went back" : "✓ watching", "Evidence that the ranker is worse than its incumbent", `evidence ${number(evidence, 1)} of ${count(run_length)}, ${note}`]);
  }
  if (all.agreement) {
    const it = all.agreement;
    facts.push(["Same page", share(it.same_page), "How often the ranker would have shown the same page", `same first document: ${share(it.same_first)}`]);
    facts.push(["Reward", number(it.reward), "What the pages that were shown have earned", `where the same: ${number(it.reward_where_same)}`]);
    facts.push(["Not identified", share(it.not_identified), "Where it would have shown something else nothing is known of what that would earn", "of the pages"]);
  }
  return facts;
}
