// An experiment to watch: what was taught against a ranker that never was, on pages that mix both, until one has won.

import { get, post, put, remove } from "/static/api.js";
import { count, say } from "/static/elements.js";
import { Sequence } from "/static/sequence.js";
import { likes, pause } from "/demo/static/voter.js";

const NAME = "taught-or-not";
const PATH = `/v1/experiments/${NAME}`;
const PLAIN = "plain";
const VISITORS = 300;
const BEAT = 40;

export class Contest {
  constructor(page, setup) {
    Object.assign(this, page, { setup, busy: false });
    this.curve = new Sequence(this.place);
    this.place.hidden = true;
  }

  stop() {
    this.busy = false;
  }

  // Deletes what an earlier contest has left; its rankers can be deleted only then.
  async clear() {
    this.stop();
    this.place.hidden = true;
    const { experiments } = await get("/v1/experiments");
    if (experiments.some((each) => each.name === NAME)) await remove(PATH);
  }

  async run() {
    const { ranker, definition, k, queries } = this.setup;
    await this.clear();
    await put(`/v1/rankers/${PLAIN}`, definition);
    const arms = [{ ranker: PLAIN }, { ranker }];
    await put(PATH, { arms, method: "team-draft", k, promote: true });
    this.busy = true;
    this.place.hidden = false;
    try {
      for (let visitor = 1; visitor <= VISITORS && this.busy; visitor += 1) {
        await this.visit(visitor, queries[visitor % queries.length], k);
        if (visitor % 5 === 0 && (await this.look(visitor))) return;
      }
      say(this.status, this.busy ? `No winner after ${VISITORS} visitors: it may have to be taught more.` : "Stopped.");
    } finally {
      this.busy = false;
    }
  }

  // A visitor looks at the mixed page from the top, and clicks the first result that is to the taste of the voter.
  async visit(visitor, query, k) {
    const { documents } = await post("/demo/candidates", { query });
    if (!documents.length) return;
    const known = new Map(documents.map((each) => [each.id, each]));
    const bare = documents.map(({ id, features }) => ({ id, features }));
    const page = await post(`${PATH}/rank`, { query, user: `visitor ${visitor}`, documents: bare });
    const liked = page.ranking.slice(0, k).find((each) => likes(known.get(each.id)));
    await post(`${PATH}/feedback`, { round: page.round, clicks: liked ? [liked.id] : [] });
    await pause(BEAT);
  }

  // Whether there is a winner; it is shown to everyone from then on, which the service sees to by itself.
  async look(visitor) {
    const experiment = await get(PATH);
    this.curve.show(experiment.pairs[0]);
    if (experiment.winner === null) {
      say(this.status, `${count(visitor)} visitors, each with a page that mixes both: not certain yet.`);
      return false;
    }
    const after = experiment.pairs[0].decided_after;
    const winner = experiment.winner === PLAIN ? "the one that never learnt" : "what was taught";
    say(this.status, `Certain after ${count(after)} visitors: ${winner} is better. Everyone sees its pages now.`);
    return true;
  }
}
