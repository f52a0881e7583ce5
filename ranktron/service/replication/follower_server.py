"""Runs a follower: `ranktron serve --follow URL`."""

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
from ranktron.service.replication.follower import Follower, LeaderClient
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
    """Serves as a follower of the leader at a URL until it is stopped.

    A promotion writes the state to `folder`. `shared` means that this process is a worker of the leader, at the same
    address: it ends when the leader does.
    """
    settings = within_open_files(read_settings(config))
    write_logs(settings.log_format, settings.log_requests)
    tokens = read_tokens(Path(settings.tokens) if settings.tokens else None)
    check_guarded(tokens, host)
    keys, tracing = read_sealing_keys(settings), read_tracing(settings)
    listener = open_socket(host, port, shared)
    os.umask(0o077)
    signal.signal(signal.SIGHUP, lambda _number, _frame: reload_secrets(tokens, keys))
    address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"

    async def serve() -> None:
        telemetry, follower = Telemetry(), Follower(LeaderClient(url, token), settings, keys)
        app = PromotableApplication(
            follower,
            tokens,
            telemetry,
            Path(folder),
            lambda folder: RankingService(folder, settings, carry_keys=keys, tracing=tracing),
        )
        server = AnnouncingServer(
            uvicorn_config(app, settings, telemetry),
            lambda: f"Following {url} at {address} ({authentication(tokens)}). Press Ctrl-C to stop.",
        )
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, lambda _number, _frame: setattr(server, "should_exit", True))
        if shared:
            Thread(target=_stop_at_eof, args=(server, sys.stdin.fileno()), daemon=True).start()
        app.start()
        try:
            await server.serve([listener])
        finally:
            await app.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, listener:
        compile_kernels()
        runner.run(serve())


def _stop_at_eof(server: uvicorn.Server, pipe: int) -> None:
    """Stops the server when the leader's end of the pipe is closed."""
    while os.read(pipe, 1024):  # os.read, since a blocked read of sys.stdin would hold its lock at exit
        pass
    server.should_exit = True
