"""Rounds that carry themselves beside stored ones: bytes and processor time, by turns, in one process without HTTP.

`benchmarks.servers` has it in its one run, for the table of `docs/serving.md`. Lists are 100 documents x 50 features,
k = 10; one list in ten gets clicks. Processor time is that of the whole process, its writer's thread included; best of
the repeats.
"""

import asyncio
import tempfile
from datetime import date
from time import process_time

import msgspec
import numpy as np

from ranktron.service.sealing_keys import SealingKeys, new_key
from ranktron.service.service import RankingService
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest

DOCUMENTS, FEATURES, K, LISTS, REPEATS, ANSWERED = 100, 50, 10, 3_000, 5, 10


async def turn(service, lists, carry):
    """Microseconds of a ranking and of a feedback, each with its JSON, and bytes of an answer and of a feedback."""
    encode, shown, before = msgspec.json.encode, [], process_time()
    for each in range(LISTS):
        answer = service.rank("shop", RankRequest(lists[each % len(lists)], "q", carry))
        shown.append((answer, len(encode(answer))))
        if each % 50 == 0:
            await asyncio.sleep(0)
    while len(service.journal):
        await asyncio.sleep(0.001)
    ranked, before, sizes = process_time() - before, process_time(), []
    told = []
    for answer, _ in shown[::ANSWERED]:
        request = FeedbackRequest(answer.round, clicks=[answer.ranking[0].id], carry=answer.carry if carry else None)
        sizes.append(len(encode(request)))
        told.append(service.feedback("shop", request))
    await asyncio.gather(*told)
    learnt = process_time() - before
    return [1e6 * ranked / LISTS, 1e6 * learnt / len(told), np.mean([size for _, size in shown]), np.mean(sizes)]


async def measured(folder):
    rng = np.random.default_rng(0)
    names = [f"f{j}" for j in range(FEATURES)]
    lists = [
        [Document(f"document-{i}", row.tolist()) for i, row in enumerate(rng.normal(size=(DOCUMENTS, FEATURES)))]
        for _ in range(20)
    ]
    keys = SealingKeys([new_key("active", date(2026, 1, 1))])
    found = {False: [], True: []}
    async with RankingService(folder, carry_keys=keys) as service:
        await service.create("shop", Definition(names, "pdgd", {"k": K}))
        for _ in range(REPEATS + 1):  # the first one compiles
            for carry in (False, True):
                found[carry].append(await turn(service, lists, carry))
        kept = service.live("shop").rounds.open.size / len(service.live("shop").rounds.open)
    return {carry: np.min(turns[1:], axis=0) for carry, turns in found.items()}, kept


def main():
    with tempfile.TemporaryDirectory() as folder:
        best, kept = asyncio.run(measured(folder))
    stored, carried = best[False], best[True]
    print("| | stored | carried |\n|---|---|---|")
    print(f"| bytes of an answer of `/rank` | {stored[2]:,.0f} | {carried[2]:,.0f} |")
    print(f"| bytes of a feedback | {stored[3]:,.0f} | {carried[3]:,.0f} |")
    print(f"| bytes in memory until the feedback comes | {kept:,.0f} | 0 |")
    print(f"| processor time of a ranking, µs | {stored[0]:.0f} | {carried[0]:.0f} |")
    print(f"| processor time of a feedback, µs | {stored[1]:.0f} | {carried[1]:.0f} |")


if __name__ == "__main__":
    main()
