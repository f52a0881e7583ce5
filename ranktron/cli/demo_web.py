"""The search page of `ranktron demo --web`."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable
from contextlib import nullcontext, suppress
from threading import Thread
from typing import TYPE_CHECKING

import click

from ranktron.errors import MissingExtra

if TYPE_CHECKING:
    from ranktron.service.demo.search import Index

PORT = 8080


def serve_search(folder: str | None, host: str, port: int | None) -> None:
    """Indexes the standard library, then serves the search page and its ranker until it is stopped."""
    try:
        from ranktron.service.auth import read_tokens
        from ranktron.service.demo.routes import search_routes, warm_up
        from ranktron.service.http.server import run
    except ModuleNotFoundError:
        raise MissingExtra("the search page", "serve") from None
    index = _prepare_index(warm_up)
    port = port or _free_port(host, (PORT, 0) if port is None else (0,))
    url_host = f"[{host}]" if ":" in host else host
    state_folder = tempfile.TemporaryDirectory(prefix="ranktron-") if folder is None else nullcontext(folder)
    with state_folder as path, suppress(KeyboardInterrupt):
        description = "a temporary folder, deleted at the end (--dir keeps it)" if folder is None else folder
        click.echo(f"Search page: http://{url_host}:{port}/search  (dashboard: http://{url_host}:{port}/)")
        click.echo(f"The ranker's state is saved in {description}.")
        run(path, None, host, port, search_routes(index, read_tokens(None)))


def _prepare_index(warm_up: Callable[[], None]) -> Index:
    """Reads and indexes the library, while a thread loads or, on first use, compiles the ranker."""
    from rich.console import Console
    from rich.progress import Progress

    from ranktron.service.demo.search import Index
    from ranktron.service.demo.standard_library import standard_library

    compiling = Thread(target=warm_up, daemon=True)
    compiling.start()
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("Reading the standard library", total=None)
        documents = standard_library(lambda done, total: progress.update(bar, completed=done, total=total))
        progress.update(bar, description=f"Indexing {len(documents):,} names", total=None)
        index = Index(documents)
        progress.update(bar, description="Compiling the ranker (first use only)", total=None)
        compiling.join()
    return index


def _free_port(host: str, candidates: tuple[int, ...]) -> int:
    """The first free one of the candidates; 0 stands for any port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in candidates:
        try:
            with socket.create_server((host, port), family=family) as server:
                free: int = server.getsockname()[1]
                return free
        except OSError:
            continue
    return PORT  # the service reports what is wrong with the host
