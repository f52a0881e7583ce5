// The search page. It speaks to the ranker as any program would: rank, show, send the labels of the first k.

import { get, poll, post, put, rankerPath, remove, ServiceError } from "/static/api.js";
import { Curve } from "/static/curve.js";
import { count, element, number, say } from "/static/elements.js";
import { Contest } from "/demo/static/contest.js";
import { Results, thumb } from "/demo/static/results.js";
import { TokenForm } from "/static/token.js";
import { Voter } from "/demo/static/voter.js";
import { Weights } from "/static/weights.js";

const PAUSE = 900; // votes that come within this many milliseconds are one answer
const place = (id) => document.getElementById(id);

const opinions = new Map(); // of each query: document -> 1 or 0
const curve = new Curve(place("curve"));
const token = new TokenForm(document.querySelector("main > div"), () => look());
let setup, ranker, k, weights, voter, contest;
let current = null; // the round on the screen
let waiting = null; // the timer of votes that are not sent yet
let explaining = false;
let made = false; // whether the ranker is known to be there
let turns = Promise.resolve(); // what is still to be done, one after the other
const results = new Results(place("results"), place("all"), vote);

const opinionsOf = (query) => opinions.get(query) ?? opinions.set(query, new Map()).get(query);

// To make the same ranker again changes nothing, so two may ask for it at once.
async function makeRanker() {
  if (!made) await put(rankerPath(ranker), setup.definition);
  made = true;
}

async function ask(query, label = query) {
  await makeRanker();
  const { documents } = await post("/demo/candidates", { query });
  if (!documents.length) return { query, shown: [] };
  const bare = documents.map(({ id, features }) => ({ id, features }));
  const answer = await post(rankerPath(ranker, "rank"), { query: label, documents: bare });
  const known = new Map(documents.map((each) => [each.id, each]));
  const shown = answer.ranking.map((each) => ({ ...known.get(each.id), ...each }));
  return { query, shown, round: answer.round, explored: answer.explored };
}

function display(round, sentence, judged = opinionsOf(round.query)) {
  const same = current?.query === round.query;
  const places = new Map(same ? current.shown.map((each) => [each.id, each.position]) : []);
  if (!same) results.whole = false;
  current = round;
  place("query").value = round.query;
  place("welcome").hidden = true;
  place("why").hidden = !round.shown.length;
  results.show(round.shown, { k, judged, places, frozen: voter.busy });
  const chance = round.explored ? " This list explored: its order was drawn by chance." : "";
  say(place("status"), (sentence || `${round.shown.length} candidates.`) + chance);
  if (explaining) attempt(explain);
}

async function search(query) {
  await teach();
  const round = await ask(query);
  display(round, round.shown.length ? null : `Nothing here has a word of “${query}”.`);
}

function vote(id, grade) {
  const mine = opinionsOf(current.query);
  if (mine.get(id) === grade) mine.delete(id);
  else mine.set(id, grade);
  results.render();
  clearTimeout(waiting);
  waiting = null;
  const received = current.shown.slice(0, k);
  const given = received.filter((each) => mine.has(each.id)).length;
  if (!given) return;
  say(place("status"), `${given} of ${received.length} judged.`);
  waiting = setTimeout(inTurn, given === received.length ? 0 : PAUSE, again);
}

// Sends the votes on the round that is shown, if there are any that have not been sent.
async function teach() {
  if (waiting === null) return null;
  clearTimeout(waiting);
  waiting = null;
  return send(current, opinionsOf(current.query));
}

async function send(round, judged) {
  const received = round.shown.slice(0, k).filter((each) => judged.has(each.id));
  const labels = Object.fromEntries(received.map((each) => [each.id, judged.get(each.id)]));
  if (!received.length) return null;
  await post(rankerPath(ranker, "feedback"), { round: round.round, labels });
  return received.length;
}

async function again() {
  const votes = await teach();
  if (votes === null) return;
  const old = current;
  const round = await ask(old.query);
  const moved = round.shown.slice(0, 10).filter((each, i) => old.shown[i]?.id !== each.id).length;
  const change = moved ? `${moved} of the first 10 changed place.` : "The order stays as it is.";
  display(round, `Learnt from ${votes} vote${votes > 1 ? "s" : ""} in round ${old.round}. ${change}`);
  look();
}

async function explain() {
  const { round } = current;
  const answer = await get(rankerPath(ranker, "explain", round));
  if (round !== current.round || !explaining) return;
  results.explain(new Map(answer.documents.filter((each) => each.contributions).map((each) => [each.id, each.contributions])));
}

// Runs something that speaks to the service, and says what went wrong if it did.
async function attempt(action, ...given) {
  try {
    await action(...given);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    say(place("status"), error.message);
    if (error.lost || error.forbidden) failed(error);
  }
}

// The same, when all that was begun before has ended: a round is answered once, and what is shown is what was asked last.
function inTurn(action, ...given) {
  turns = turns.then(() => attempt(action, ...given));
}

function failed(error) {
  if (error.forbidden) token.show(error.message);
  connection("lost", error.lost ? "Connection lost, trying again…" : error.message);
}

function connection(state, text) {
  document.body.dataset.state = state;
  say(place("connection"), text);
}

async function startOver() {
  await contest.clear();
  await remove(rankerPath(ranker));
  await put(rankerPath(ranker), setup.definition);
  opinions.clear();
  const query = current?.query;
  current = null;
  if (query) display(await ask(query), "Everything is forgotten: all weights are zero again.");
  else say(place("status"), "Everything is forgotten: all weights are zero again.");
  look();
}

// What the page is about, once; then how the ranker is doing, again and again.
async function learnt() {
  if (!setup) {
    setup = await get("/demo/setup");
    ({ ranker, k } = setup);
    start();
  }
  await makeRanker();
  return get(rankerPath(ranker, "dashboard")).catch((error) => {
    made = error.status !== 404;
    throw error;
  });
}

function showProgress(dashboard) {
  if (document.body.dataset.state !== "live") {
    connection("live", "Live");
    token.hide();
    inTurn(arrive);
  }
  curve.show(dashboard.curve);
  weights.show(dashboard.weights, { version: dashboard.version });
  const last = dashboard.curve[dashboard.curve.length - 1];
  const rounds = dashboard.feedback.rounds;
  const so = last ? `Mean NDCG of what was voted on: ${number(last.mean, 2)}` : "It has not received anything yet";
  say(place("learnt"), `${so}. ${count(rounds)} round${rounds === 1 ? "" : "s"} answered.`);
}

function start() {
  weights = new Weights(place("weights"), { most: 10, explanations: setup.features, drift: "what the last votes changed" });
  voter = new Voter({ queries: setup.queries, k, ask, send, display, look: () => look() });
  contest = new Contest({ place: place("contest-curve"), status: place("contest-status") }, setup);
  say(place("size"), `${count(setup.documents)} documented names of ${setup.python}`);
  for (const node of document.querySelectorAll(".k")) say(node, String(k));
  place("thumbs").append(thumb(false), " ", thumb(true));
  place("dashboard-link").href = `/?search#${encodeURIComponent(ranker)}`;
  const chip = (query) => element("button", { type: "button", onclick: () => choose(query) }, query);
  place("examples").append(...setup.examples.map(chip));
  place("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    choose(place("query").value.trim());
  });
  place("why").addEventListener("click", () => {
    explaining = !explaining;
    place("why").setAttribute("aria-pressed", String(explaining));
    say(place("why"), explaining ? "Hide the reasons" : "Why this order?");
    if (explaining) attempt(explain);
    else results.explain(null);
  });
  place("voter").addEventListener("click", () => (voter.busy ? voter.stop() : inTurn(simulate)));
  place("contest").addEventListener("click", () => (contest.busy ? contest.stop() : inTurn(compare)));
  place("over").addEventListener("click", () => {
    voter.stop();
    contest.stop();
    inTurn(startOver);
  });
  window.addEventListener("popstate", () => inTurn(asAddressed));
}

async function compare() {
  await teach();
  say(place("contest"), "Stop it");
  await contest.run().finally(() => say(place("contest"), "Compare it"));
}

async function simulate() {
  await teach();
  say(place("voter"), "Stop it");
  await voter.vote().finally(() => say(place("voter"), "Let it vote 30 times"));
  if (current) display(await ask(current.query), "The simulated voter is done: now it is your turn.");
}

// Whoever has searched before the page was ready need not be asked again.
async function arrive() {
  if (!current) await asAddressed();
}

// Searches for what the address says, on arrival and on the way back.
async function asAddressed() {
  const query = new URLSearchParams(location.search).get("q");
  if (query) await search(query);
}

function choose(query) {
  if (!query) return;
  voter.stop();
  history.pushState(null, "", `?q=${encodeURIComponent(query)}`);
  inTurn(search, query);
}

const look = poll(learnt, showProgress, failed);
