"""`ranktron mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ranktron.errors import MissingExtra, RanktronError

if TYPE_CHECKING:
    from ranktron.store.store import Store


@click.command()
@click.option(
    "--dir", "folder", type=click.Path(file_okay=False), required=True, help="The store: a folder of rankers."
)
def mcp(folder: str) -> None:
    """Offer the rankers of a store to language models, as tools of the Model Context Protocol.

    An agent that starts it talks to it over standard input and output. Its tools are rank, feedback and explain. The
    store is open until the input ends, and nobody else can open it meanwhile.

    Example: ranktron mcp --dir memory
    """
    try:
        from mcp.server import MCPServer
    except ImportError:
        raise MissingExtra("the tool server", "mcp") from None
    from ranktron.store.store import Store

    with Store(folder) as store:
        server = MCPServer("ranktron", instructions=instructions(store), log_level="WARNING")
        for tool in tools(store):
            server.tool()(tool)
        server.run("stdio")


def instructions(store: Store) -> str:
    """What a model is told: what the tools are for, and which rankers there are."""
    lines = [
        "Rankers order documents by their features and learn from what is used. Call `rank` with the features of the "
        "documents; then call `feedback` with the id of the ranking and the documents that were cited, used or liked, "
        "an empty list if none was. The rankers:"
    ]
    for name in store.rankers:
        try:
            state = store.ranker(name).state
        except RanktronError as error:  # it was set aside
            lines.append(f"- {name}: {error}")
            continue
        what = f"learns from the first {state.k}" if state.learns == "top" else "learns from labels"
        lines.append(f"- {name}: features {', '.join(state.features)}; {what}")
    return "\n".join(lines)


def tools(store: Store) -> list[Any]:
    """The functions that models may call; their docstrings and annotations are the descriptions."""
    from mcp.server.mcpserver.exceptions import ToolError
    from msgspec import to_builtins

    def rank(ranker: str, documents: dict[str, dict[str, float]], query: str = "", user: str = "") -> dict[str, Any]:
        """Ranks documents, given as {id: {feature: value}}: their ids, best first, and the id of the ranking."""
        try:
            shown = store.ranker(ranker).rank(documents, query=query, user=user)
        except RanktronError as error:
            raise ToolError(str(error)) from None
        return {"ranking": shown.id, "items": shown.items, "scores": shown.scores}

    def feedback(
        ranker: str, ranking: int, used: list[str] | None = None, gains: dict[str, float] | None = None
    ) -> dict[str, Any]:
        """Tells which documents of a ranking were cited, used or liked (`used`), or what each was worth (`gains`)."""
        try:
            answer = store.ranker(ranker).feedback(ranking, clicked=used, gains=gains)
        except RanktronError as error:
            raise ToolError(str(error)) from None
        return {"learned": answer is not None and answer.learned}

    def explain(ranker: str, ranking: int) -> dict[str, Any]:
        """Says what each feature added to the score of each document of a ranking."""
        try:
            answer = store.ranker(ranker).explain(ranking)
        except RanktronError as error:
            raise ToolError(str(error)) from None
        return {"documents": to_builtins(answer.documents)}

    return [rank, feedback, explain]
