"""Worker processes at one address: this process leads, workers follow, the kernel balances connections over all."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import signal
import socket
import sys
from contextlib import suppress

from ranktron.service.auth import Holder, Tokens

_RESTART_DELAY = 1.0  # seconds
_logger = logging.getLogger("ranktron.service")


class WorkerTokens(Tokens):
    """The clients' tokens, and one more for this server's workers."""

    def __init__(self, client_tokens: Tokens) -> None:
        super().__init__([])
        self._client_tokens, self.secret = client_tokens, secrets.token_urlsafe(32)

    def __len__(self) -> int:
        return len(self._client_tokens)

    @property
    def required(self) -> bool:
        return self._client_tokens.required

    def reload(self) -> None:
        self._client_tokens.reload()

    def holder(self, token: str) -> Holder | None:
        if hmac.compare_digest(token.encode("latin-1", "replace"), self.secret.encode()):
            return Holder("workers", frozenset({"admin"}))
        return self._client_tokens.holder(token)


class WorkerProcesses:
    """Starts and restarts worker processes, each a follower of this process.

    Parameters
    ----------
    count : int
        Number of workers.
    inner : socket
        Listening socket of this process for its workers.
    address : (str, int)
        Host and port that all processes serve.
    config : str, optional
        The settings file.
    secret : str
        The workers' token.
    """

    def __init__(
        self, count: int, inner: socket.socket, address: tuple[str, int], config: str | None, secret: str
    ) -> None:
        url, (host, port) = f"http://127.0.0.1:{inner.getsockname()[1]}", address
        self._count = count
        self._running: set[asyncio.subprocess.Process] = set()
        self._command = [sys.executable, "-m", "ranktron", "serve", "--shared", "--follow", url]
        self._command += ["--host", host, "--port", str(port), *(["--config", config] if config else [])]
        self._environment = {**os.environ, "RANKTRON_LEADER_TOKEN": secret}
        self._environment.pop("RANKTRON_JOURNAL", None)

    def reload(self) -> None:
        """Makes the workers reload tokens and keys."""
        for process in self._running:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGHUP)

    async def run(self) -> None:
        """Keeps the workers running until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._count):
                group.create_task(self._supervise())

    async def _supervise(self) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                stdin=asyncio.subprocess.PIPE,  # closed when this process ends, however it ends: the worker stops then
                stdout=asyncio.subprocess.DEVNULL,
            )
            self._running.add(process)
            try:
                status = await process.wait()
            except asyncio.CancelledError:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
                await process.wait()
                raise
            finally:
                self._running.discard(process)
            _logger.error("a worker ended with status %d, and is started again", status)
            await asyncio.sleep(_RESTART_DELAY)
