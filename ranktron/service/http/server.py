"""Runs the service: reads configuration and tokens, and serves the application."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import uvicorn
import uvloop
from rich.console import Console
from starlette.routing import BaseRoute, Router

from ranktron.errors import DataError
from ranktron.service.auth import Tokens, read_tokens
from ranktron.service.config import read_settings
from ranktron.service.http.app import application
from ranktron.service.http.listening import (
    AnnouncingServer,
    authentication,
    check_guarded,
    compile_kernels,
    count_of,
    open_socket,
    read_sealing_keys,
    read_tracing,
    reload_secrets,
    uvicorn_config,
    within_open_files,
)
from ranktron.service.http.logs import write_logs
from ranktron.service.replication.leadership import Leadership
from ranktron.service.replication.workers import WorkerProcesses, WorkerTokens
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry
from ranktron.store.errors import RequestError


def run(
    folder: str,
    config: str | None,
    host: str,
    port: int,
    extra_routes: Sequence[BaseRoute] = (),
    models: Sequence[str] = (),
    journal: str | None = None,
    workers: int = 1,
) -> None:
    """Serves until it is stopped; then finishes open requests and takes snapshots.

    `extra_routes` come before the service's own; `models` are model files, each served as a ranker of its name;
    `journal` is the address of a database, whose servers elect a leader; `workers` is the number of processes.
    """
    settings = within_open_files(read_settings(config))
    write_logs(settings.log_format, settings.log_requests)
    tokens = WorkerTokens(read_tokens(Path(settings.tokens) if settings.tokens else None))
    check_guarded(tokens, host)
    keys, tracing = read_sealing_keys(settings), read_tracing(settings)
    listening = open_socket(host, port, shared=workers > 1)
    os.umask(0o077)  # users' queries and the models learnt from them are private
    _warn_of_readers(Path(folder))
    signal.signal(signal.SIGHUP, lambda _number, _frame: reload_secrets(tokens, keys))
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())  # shut down cleanly, even during a replay
    telemetry = Telemetry()

    def make(service: RankingService) -> Router:
        return application(service, tokens, extra_routes, telemetry)

    leadership = Leadership(lambda: RankingService(folder, settings, journal, carry_keys=keys, tracing=tracing), make)
    try:
        with Console(stderr=True).status("Starting (the first start compiles, which takes a while)"):
            compile_kernels()
            service = RankingService(folder, settings, carry_keys=keys, tracing=tracing) if journal is None else None
    except BaseException:
        listening.close()
        raise
    where = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

    def line() -> str:
        return _announcement(service or leadership.service, tokens, folder, where)

    server = AnnouncingServer(
        uvicorn_config(leadership if service is None else make(service), settings, telemetry), line
    )

    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again after a clean shutdown
        signal.signal(number, lambda _number, _frame: setattr(server, "should_exit", True))
    inner = open_socket("127.0.0.1", 0) if workers > 1 else listening
    sockets = [listening, inner] if workers > 1 else [listening]
    others = WorkerProcesses(workers - 1, inner, (host, listening.getsockname()[1]), config, tokens.secret)

    def reload(_number: int, _frame: object) -> None:
        reload_secrets(tokens, keys)
        others.reload()

    signal.signal(signal.SIGHUP, reload)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, listening, inner:
        if service is None:
            runner.run(_serve_with_workers(others, _serve_elected(leadership, server, sockets, models)))
        else:
            runner.run(_serve_with_workers(others, _serve(service, server, sockets, models)))


def _announcement(service: RankingService | None, tokens: Tokens, folder: str, where: str) -> str:
    if service is None:
        return f"Standing by at {where} ({authentication(tokens)}): another server leads. Press Ctrl-C to stop."
    return (
        f"Serving {count_of(len(service.live_rankers), 'ranker')} from {folder} at {where} "
        f"({authentication(tokens)}). {_list_quarantined(service)}Press Ctrl-C to stop."
    )


async def _serve_with_workers(workers: WorkerProcesses, serving: Coroutine[Any, Any, None]) -> None:
    """Serves while the worker processes run."""
    running = asyncio.create_task(workers.run())
    try:
        await serving
    finally:
        running.cancel()
        await asyncio.wait([running])


def _warn_of_readers(folder: Path) -> None:
    """Warns if other users can read the state folder; its mode stays, since it may be shared on purpose."""
    try:
        readable = folder.stat().st_mode & 0o001 and (folder / "log.sqlite").stat().st_mode & 0o004
    except OSError:
        return
    if readable:
        click.echo(f"Other users of this machine can read {folder}: chmod -R go= {folder}", err=True)


async def _serve(
    service: RankingService, server: uvicorn.Server, sockets: list[socket.socket], models: Sequence[str]
) -> None:
    try:
        service.start()
    except BaseException:
        service.journal.close()
        raise
    try:
        await _make_rankers(service, models)
        await server.serve(sockets)
    finally:
        await service.stop()


async def _serve_elected(
    leadership: Leadership, server: AnnouncingServer, sockets: list[socket.socket], models: Sequence[str]
) -> None:
    """Serves while this server leads; refuses requests while it is a standby."""

    async def begin(service: RankingService) -> None:
        await _make_rankers(service, models)
        if server.started:
            click.echo(server.line())

    leading = asyncio.create_task(leadership.run(begin))
    known = asyncio.create_task(leadership.settled.wait())
    await asyncio.wait([leading, known], return_when=asyncio.FIRST_COMPLETED)
    known.cancel()
    serving = asyncio.create_task(server.serve(sockets)) if not leading.done() else leading
    await asyncio.wait([leading, serving], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await asyncio.wait([serving])
    leading.cancel()
    with suppress(asyncio.CancelledError):
        await leading


async def _make_rankers(service: RankingService, models: Sequence[str]) -> None:
    for model in models:
        await _make_ranker(service, Path(model))


async def _make_ranker(service: RankingService, file: Path) -> None:
    """Serves a model file as a ranker of its name."""
    try:
        await service.create_from_model(file.stem, file.read_bytes())
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None
    except RequestError as error:
        raise DataError(f"{file} cannot be served as {file.stem!r}: {error}") from None


def _list_quarantined(service: RankingService) -> str:
    rankers = service.engine.quarantined.values()
    if not rankers:
        return ""
    return f"{len(rankers)} set aside: {', '.join(f'{ranker.name} ({ranker.reason})' for ranker in rankers)}. "
