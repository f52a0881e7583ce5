"""Running the service: configuration, tokens, and a server around the application."""

from __future__ import annotations

import asyncio
import math
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvicorn
import uvloop
from msgspec import Raw, structs
from rich.console import Console
from starlette.routing import BaseRoute, Router

from ranktron.errors import DataError, MissingExtra
from ranktron.service.app import application
from ranktron.service.config import Config, read_settings
from ranktron.service.connections import SPARE, Connections
from ranktron.service.errors import RequestError
from ranktron.service.features import document_matrix
from ranktron.service.leadership import Leadership
from ranktron.service.logs import write_logs
from ranktron.service.models import blank_model
from ranktron.service.service import RankingService
from ranktron.service.stats import observed_quality
from ranktron.service.telemetry import Telemetry
from ranktron.service.tokens import Tokens, read_tokens
from ranktron.service.types import Definition, Document

if TYPE_CHECKING:
    from ranktron.service.carry_keys import CarryKeys
    from ranktron.service.tracing import Tracing

_FILES = 100  # that may be open besides connections


def run(
    folder: str,
    config: str | None,
    host: str,
    port: int,
    also: Sequence[BaseRoute] = (),
    models: Sequence[str] = (),
    journal: str | None = None,
) -> None:
    """Serves until it is told to stop; then waits for what is under way, and takes snapshots.

    `also` are more routes; `models` are files, each of which becomes a ranker with the name of the file; `journal` is
    the address of a database, whose servers elect one that leads.
    """
    settings = _within_open_files(read_settings(config))
    write_logs(settings.log_format, settings.log_requests)
    tokens = read_tokens(Path(settings.tokens) if settings.tokens else None)
    if not tokens and not is_loopback(host):
        raise DataError(
            f"listening at {host} without tokens would let anyone in: make one with `ranktron token NAME`, or listen "
            "at 127.0.0.1"
        )
    keys, tracing = _carry_keys(settings), _tracing(settings)
    listening = _open_socket(host, port)
    os.umask(0o077)  # what users search for, and what was learnt from them, is nobody else's business
    _warn_of_readers(Path(folder))
    signal.signal(signal.SIGHUP, lambda _number, _frame: _reload(tokens, keys))
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit())  # in good order, in the middle of a replay, too
    telemetry = Telemetry()

    def make(service: RankingService) -> Router:
        return application(service, tokens, also, telemetry)

    leadership = Leadership(lambda: RankingService(folder, settings, journal, carry_keys=keys, tracing=tracing), make)
    try:
        with Console(stderr=True).status("Starting (the first start compiles, which takes a while)"):
            _compile()
            service = RankingService(folder, settings, carry_keys=keys, tracing=tracing) if journal is None else None
    except BaseException:
        listening.close()
        raise
    where = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

    def line() -> str:
        leading = service or leadership.service
        if leading is None:
            return f"Standing by at {where} ({_authentication(tokens)}): another server leads. Press Ctrl-C to stop."
        return (
            f"Serving {_count(len(leading.live_rankers), 'ranker')} from {folder} at {where} "
            f"({_authentication(tokens)}). {_set_aside(leading)}Press Ctrl-C to stop."
        )

    server = _Server(_uvicorn_config(leadership if service is None else make(service), settings, telemetry), line)

    def end(_number: int, _frame: object) -> None:  # the server raises signals again when it has ended in good order
        server.should_exit = True

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, end)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, listening:
        if service is None:
            runner.run(_serve_elected(leadership, server, listening, models))
        else:
            runner.run(_serve(service, server, listening, models))


def _uvicorn_config(application: Any, settings: Config, telemetry: Telemetry) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=Connections(settings, telemetry.refused).protocol,
        ws="none",
        lifespan="off",
        proxy_headers=False,  # who is behind a proxy is of no interest here
        access_log=False,
        log_level="error",  # what clients do wrong is counted, and fills no disk
        server_header=False,
        timeout_keep_alive=math.ceil(settings.idle_seconds) + 1,  # connections are closed before that
        timeout_graceful_shutdown=int(settings.request_seconds) + 1,
    )


def _carry_keys(settings: Config) -> CarryKeys | None:
    """The keys of rounds that carry themselves, if there are any."""
    if not settings.carry_keys:
        return None
    try:
        from ranktron.service.carry_keys import StoredCarryKeys
    except ModuleNotFoundError:
        raise MissingExtra("rounds that carry themselves", "serve") from None
    return StoredCarryKeys(Path(settings.carry_keys))


def _tracing(settings: Config) -> Tracing | None:
    """The traces of OpenTelemetry, if they are wanted."""
    if not settings.tracing:
        return None
    try:
        from ranktron.service.tracing import start_tracing

        return start_tracing()
    except ModuleNotFoundError:
        raise MissingExtra("tracing requests", "tracing") from None


def _reload(tokens: Tokens, keys: CarryKeys | None) -> None:
    tokens.reload()
    if keys is not None:
        keys.reload()


def _warn_of_readers(folder: Path) -> None:
    """Says that others can read a folder of before. It is left as it is: it may be shared on purpose, or be /tmp."""
    try:
        readable = folder.stat().st_mode & 0o001 and (folder / "log.sqlite").stat().st_mode & 0o004
    except OSError:
        return
    if readable:
        click.echo(f"Other users of this machine can read {folder}: chmod -R go= {folder}", err=True)


class _Server(uvicorn.Server):
    """Says where it is once it can be asked."""

    def __init__(self, config: uvicorn.Config, line: Callable[[], str]) -> None:
        super().__init__(config)
        self.line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        click.echo(self.line())


async def _serve(
    service: RankingService, server: uvicorn.Server, listening: socket.socket, models: Sequence[str]
) -> None:
    try:
        service.start()
    except BaseException:
        service.journal.close()
        raise
    try:
        await _make_rankers(service, models)
        await server.serve([listening])
    finally:
        await service.stop()


async def _serve_elected(
    leadership: Leadership, server: _Server, listening: socket.socket, models: Sequence[str]
) -> None:
    """Serves while this server leads, and refuses while it stands by."""

    async def begin(service: RankingService) -> None:
        await _make_rankers(service, models)
        if server.started:
            click.echo(server.line())

    leading = asyncio.create_task(leadership.run(begin))
    known = asyncio.create_task(leadership.settled.wait())
    await asyncio.wait([leading, known], return_when=asyncio.FIRST_COMPLETED)
    known.cancel()
    serving = asyncio.create_task(server.serve([listening])) if not leading.done() else leading
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
    """Serves a model file as a ranker with its name, or says why not."""
    try:
        await service.create_from_model(file.stem, file.read_bytes())
    except OSError as error:
        raise DataError(f"cannot read {file}: {error.strerror}") from None
    except RequestError as error:
        raise DataError(f"{file} cannot be served as {file.stem!r}: {error}") from None


def _within_open_files(settings: Config) -> Config:
    """Asks the system for as many open files as there may be connections, or lowers the limit to what it allows."""
    needed = settings.max_connections + SPARE + _FILES
    allowed, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed in (resource.RLIM_INFINITY, -1) or allowed >= needed:
        return settings
    if most == resource.RLIM_INFINITY or most > allowed:
        allowed = needed if most == resource.RLIM_INFINITY else min(needed, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))
    if allowed >= needed:
        return settings
    left = max(1, allowed - SPARE - _FILES)
    click.echo(f"Only {allowed} files may be open: at most {left} connections are taken (see ulimit -n).", err=True)
    return structs.replace(settings, max_connections=left)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _set_aside(service: RankingService) -> str:
    aside = service.set_aside.values()
    return f"{len(aside)} set aside: {', '.join(f'{each.name} ({each.reason})' for each in aside)}. " if aside else ""


def _authentication(tokens: Tokens) -> str:
    return f"{_count(len(tokens), 'token')} accepted" if len(tokens) else "authentication off"


def _compile() -> None:
    """Does once what requests do, so that the first client does not wait for the compiler."""
    blank_model(Definition(["feature"]), Config())
    document_matrix([Document("first", Raw(b"[1.5]"))], ["feature"])
    observed_quality((1.0,))


def _open_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        raise DataError(f"cannot listen at {host}, port {port}: {error.strerror}") from None
    return listening


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
