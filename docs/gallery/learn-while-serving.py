"""Learn while serving

A ranker that starts knowing nothing, in the service that `ranktron serve` runs. It shows a page, hears which of the
first five documents were clicked, and has learnt from it when the next user comes. Half way the service is stopped
and started again: what it has learnt is on disk, and nothing is lost.
"""

import asyncio
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import ranktron
from ranktron.service.service import RankingService
from ranktron.store.messages import Definition, Document, FeedbackRequest, RankRequest

pages = ranktron.synthetic.WebSearch(features=8, documents=20, seed=3).rounds(800)


async def serve(folder, pages):
    """Serves some pages from the state in a folder: for each, how many of the first five were clicked."""
    clicks = []
    async with RankingService(folder) as service:
        # pdgd learns from the clicks on the first k; the same definition again is the same ranker
        await service.create("shop", Definition(list("abcdefgh"), "pdgd", {"k": 5, "eta": 0.1}))
        for page in pages:
            documents = [Document(str(i), row.tolist()) for i, row in enumerate(page.X)]
            shown = service.rank("shop", RankRequest(documents))
            first = [document.id for document in shown.ranking[:5]]
            liked = [name for name in first if page.labels[int(name)] >= 2]  # users click what is good
            await service.feedback("shop", FeedbackRequest(shown.round, clicks=liked))
            clicks.append(len(liked))
    return clicks


with tempfile.TemporaryDirectory() as folder:
    clicks = asyncio.run(serve(folder, pages[:400]))
    clicks += asyncio.run(serve(folder, pages[400:]))  # a new process would find the same state

# Pages have more or fewer good documents: clicks are counted as a share of those that the best order would have had.
possible = np.array([min(5, np.sum(page.labels >= 2)) for page in pages])
shares = np.reshape(clicks, (-1, 50)).sum(axis=1) / possible.reshape(-1, 50).sum(axis=1)
chance = sum(5 * np.mean(page.labels >= 2) for page in pages) / possible.sum()
print(f"share of the possible clicks, first 50 pages: {shares[0]:.0%}, last 50 pages: {shares[-1]:.0%}")
print(f"a random order would have {chance:.0%}")

plt.style.use(Path(__file__).with_name("gallery.mplstyle"))
plt.plot(np.arange(25, 800, 50), 100 * shares, "o-", label="the service, learning from its clicks")
plt.axhline(100, color="C2", linestyle="--", label="the best order")
plt.axhline(100 * chance, color="C5", linestyle=":", label="a random order")
plt.axvline(400, ymax=0.77, color="C5", linewidth=1)
plt.text(408, 3, "service stopped\nand started again")
plt.suptitle(f"It learns as it serves: {shares[0]:.0%} to {shares[-1]:.0%} of the possible clicks", x=0.01, ha="left")
plt.xlabel("pages shown")
plt.yticks([0, 25, 50, 75, 100], ["0 %", "25 %", "50 %", "75 %", "100 %"])
plt.ylabel("clicks, of those possible")
plt.ylim(0, 130)
plt.legend(loc="upper left", ncols=2)
plt.savefig("learn-while-serving.svg")
