// A simulated voter: it asks, looks at the first k results, and votes by a simple rule, through the same interface.

const ROUNDS = 30;
const BEAT = 350;

export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// Its taste, which the page tells in words: classes and exceptions with every word of the query in their name.
export function likes({ features }) {
  return features.words_in_name === 1 && features.is_class + features.is_exception > 0;
}

export class Voter {
  constructor(page) {
    Object.assign(this, page);
    this.busy = false;
    this.next = 0;
  }

  stop() {
    this.busy = false;
  }

  async vote() {
    this.busy = true;
    try {
      for (let turn = 1; turn <= ROUNDS && this.busy; turn += 1) await this.turn(turn);
    } finally {
      this.busy = false;
    }
  }

  async turn(turn) {
    const query = this.queries[this.next % this.queries.length];
    this.next += 1;
    const round = await this.ask(query, `${query} (simulated)`);
    if (!round.shown.length) return;
    const judged = new Map(round.shown.slice(0, this.k).map((each) => [each.id, likes(each) ? 1 : 0]));
    const good = [...judged.values()].filter((grade) => grade).length;
    this.display(round, `Simulated vote ${turn} of ${ROUNDS}: “${query}”, ${good} of the first ${judged.size} are to its taste.`, judged);
    await this.send(round, judged);
    this.look();
    await pause(BEAT);
  }
}
