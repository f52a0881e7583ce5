// The dashboard: which rankers there are, and how the chosen one is doing.

import { get, poll, rankerPath } from "/static/api.js";
import { Curve } from "/static/curve.js";
import { Distances } from "/static/distances.js";
import { bytes, count, duration, element, keep, number, say, share } from "/static/elements.js";
import { Experiment } from "/static/experiment.js";
import { Rounds } from "/static/rounds.js";
import { TokenForm } from "/static/token.js";
import { Weights } from "/static/weights.js";

const place = (id) => document.getElementById(id);
const curve = new Curve(place("curve"));
const weights = new Weights(place("weights"));
const distances = new Distances(place("distances"));
const rounds = new Rounds(place("rounds"));
const experiment = new Experiment(place("experiment"));
const token = new TokenForm(place("content"), () => now());
let lastAnswer = null;

function wanted(names) {
  const asked = decodeURIComponent(location.hash.slice(1));
  return names.includes(asked) ? asked : names[0];
}

// Experiments have addresses that no ranker can have: #/name.
async function ask() {
  const [{ rankers, set_aside }, tests] = await Promise.all([get("/v1/rankers"), get("/v1/experiments")]);
  const others = [...tests.experiments.map((each) => each.name), ...Object.keys(tests.set_aside)];
  const names = [...rankers, ...set_aside].map((ranker) => ranker.name);
  const chosen = others.find((each) => `/${each}` === decodeURIComponent(location.hash.slice(1)));
  const message = tests.set_aside[chosen];
  if (chosen) return { names, others, chosen, aside: message && { message }, test: tests.experiments.find((each) => each.name === chosen) };
  return { others, ...(await askRanker(rankers, set_aside, names)) };
}

async function askRanker(rankers, set_aside, names) {
  const name = wanted(names);
  const aside = set_aside.find((ranker) => ranker.name === name);
  return { names, name, aside, dashboard: name === undefined || aside ? null : await get(rankerPath(name, "dashboard")) };
}

function show({ names, others, chosen, test, name, aside, dashboard }) {
  lastAnswer = new Date();
  connected(aside ? "lost" : "live", aside ? aside.message : "Live");
  token.hide();
  only(test ? "experiment" : aside ? null : dashboard ? "dashboard" : "empty");
  keep(place("rankers"), names, (each) => each, link, (node, each) => mark(node, each === name));
  keep(place("experiments"), others, (each) => each, (each) => link(`/${each}`), (node, each) => mark(node, each === chosen));
  if (test) experiment.show(test);
  if (!dashboard) return;
  facts(place("facts"), headline(dashboard));
  facts(place("health"), health(dashboard));
  curve.show(dashboard.curve);
  weights.show(dashboard.weights, { window: dashboard.updates.window });
  place("curved").hidden = dashboard.map === null;
  say(place("curved"), `With the map ${dashboard.map} a feature has a curve instead of one weight. Its bar shows how much it can change a score.`);
  distances.show(dashboard.distances);
  rounds.show(name, dashboard.recent);
}

function failed(error) {
  if (error.forbidden) {
    connected("closed", "Locked");
    only(null);
    token.show(error.message);
  } else if (error.lost) {
    const since = lastAnswer ? ` since ${lastAnswer.toLocaleTimeString()}` : "";
    connected("lost", `Connection lost${since}, trying again…`);
  } else if (error.status !== 404) connected("lost", error.message); // a ranker that has just gone is no fault
}

function only(shown) {
  for (const id of ["dashboard", "empty", "experiment"]) place(id).hidden = id !== shown;
}

function connected(state, text) {
  document.body.dataset.state = state;
  say(place("connection"), text);
}

function link(name) {
  return element("a", { href: `#${encodeURIComponent(name)}` }, name.replace("/", "⚖ "));
}

function mark(node, chosen) {
  if (chosen) node.setAttribute("aria-current", "page");
  else node.removeAttribute("aria-current");
}

function facts(list, entries) {
  const make = ([name, , hint]) => element("div", { title: hint }, element("dt", {}, name), element("dd", {}), element("dd", { class: "under" }));
  keep(list, entries, ([name]) => name, make, (node, [, value, , under]) => {
    say(node.children[1], value);
    say(node.children[2], under || "");
  });
}

function headline(all) {
  const { rate, delay } = all.feedback;
  const mean = all.curve.length ? all.curve[all.curve.length - 1].mean : NaN;
  return [
    ["Quality", number(mean), "Mean observed NDCG of the last 100 rounds with feedback", "mean of the last 100"],
    ["Rounds", count(all.rounds), "Rankings served", `${count(all.feedback.rounds)} answered, k = ${all.k}`],
    ["Open", count(all.open), "Rounds that are still waiting for feedback", `feedback: ${number(rate, rate < 9.95 ? 1 : 0)} per second`],
    ["Feedback delay", duration(delay.p50), "Median time from a ranking to its feedback", `p90 ${duration(delay.p90)}, p99 ${duration(delay.p99)}`],
    ["Exploration", share(all.exploration), "Share of rankings whose order was drawn at random", "of all rankings"],
    ["Last update", number(all.updates.last, 4), "Length of the last update of the weights", `mean ${number(all.updates.norm, 4)}`],
  ];
}

function health(all) {
  const { ready, disk, snapshot_age, log_bytes, dropped } = all.health;
  return [
    ["Service", ready ? "✓ ready" : "✗ not ready", "Whether feedback can be written to disk", `version ${all.version}`],
    ["Disk", bytes(disk), "Free space on the disk that holds the state", "free"],
    ["Snapshot", snapshot_age === null ? "none yet" : duration(snapshot_age), "Age of the last snapshot", snapshot_age === null ? "all is in the log" : "ago"],
    ["Log", bytes(log_bytes), "Size of the log on disk", "on disk"],
    ["Dropped", count(dropped), "Open rounds that were dropped, oldest first", "open rounds"],
    ["Up", duration(all.seconds), "Time since the service started", ""],
  ];
}

function session() {
  const header = sessionStorage.getItem("ranktron-token") ? ` \\\n  -H "Authorization: Bearer $TOKEN"` : "";
  const curl = (method, path, body) => `curl -X ${method} ${location.origin}${path}${header} \\\n  -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(body)}'`;
  return [
    curl("PUT", "/v1/rankers/first", { algorithm: "topk", parameters: { k: 3 }, features: ["text", "fresh"], labels: [0, 4] }),
    curl("POST", "/v1/rankers/first/rank", { query: "tea", documents: [{ id: "a", features: [0.2, 1] }, { id: "b", features: [0.9, 0] }, { id: "c", features: [0.4, 0.5] }] }),
    curl("POST", "/v1/rankers/first/feedback", { round: 0, labels: { a: 0, b: 3, c: 1 } }),
  ].join("\n\n");
}

place("session").textContent = session();
place("search").hidden = !new URLSearchParams(location.search).has("search");
place("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(place("session").textContent).then(
    () => say(place("copied"), "Copied."),
    () => say(place("copied"), "The browser does not allow copying: select the text instead."),
  );
});

const now = poll(ask, show, failed);
window.addEventListener("hashchange", now);
