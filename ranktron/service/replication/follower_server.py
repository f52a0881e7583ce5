"""Running a server that follows: its own address, its own tokens, and the leader's weights."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from threading import Thread

import uvicorn
import uvloop

from ranktron.service.auth import read_tokens
from ranktron.service.config import read_settings
from ranktron.service.http.listening import (
    AnnouncingServer,
    authentication,
    check_guarded,
    compile_kernels,
    open_socket,
    read_sealing_keys,
    read_tracing,
    reload_secrets,
    uvicorn_config,
    within_open_files,
)
from ranktron.service.http.logs import write_logs
from ranktron.service.replication.follower import Follower
from ranktron.service.replication.leader_client import LeaderClient
from ranktron.service.replication.promotion import PromotableApplication
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry


def follow(
    url: str,
    config: str | None,
    host: str,
    port: int,
    token: str | None = None,
    folder: str = "state",
    shared: bool = False,
) -> None:
    """Ranks with the weights of the leader at a URL, and hands everything else on to it, until it is told to stop.

    `folder` is where its state is if it is promoted, and leads. `shared` means that this is a process of the leader, at
    the same address: it ends when the leader does.
    """
    settings = within_open_files(read_settings(config))
    write_logs(settings.log_format, settings.log_requests)
    tokens = read_tokens(Path(settings.tokens) if settings.tokens else None)
    check_guarded(tokens, host)
    keys, tracing = read_sealing_keys(settings), read_tracing(settings)
    listening = open_socket(host, port, shared)
    os.umask(0o077)
    signal.signal(signal.SIGHUP, lambda _number, _frame: reload_secrets(tokens, keys))
    where = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"

    async def serve() -> None:
        telemetry, follower = Telemetry(), Follower(LeaderClient(url, token), settings, keys)
        app = PromotableApplication(
            follower,
            tokens,
            telemetry,
            Path(folder),
            lambda place: RankingService(place, settings, carry_keys=keys, tracing=tracing),
        )
        server = AnnouncingServer(
            uvicorn_config(app, settings, telemetry),
            lambda: f"Following {url} at {where} ({authentication(tokens)}). Press Ctrl-C to stop.",
        )
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda _number, _frame: setattr(server, "should_exit", True))
        if shared:
            Thread(target=_end_with, args=(server, sys.stdin.fileno()), daemon=True).start()
        app.start()
        try:
            await server.serve([listening])
        finally:
            await app.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, listening:
        compile_kernels()
        runner.run(serve())


def _end_with(server: uvicorn.Server, pipe: int) -> None:
    """Ends a server when the other end of a pipe does."""
    while os.read(pipe, 1024):  # not by a file of Python's, which is locked when the process ends
        pass
    server.should_exit = True
