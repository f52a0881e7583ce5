"""Many processes at one address: this one leads, the others follow it, and the system deals out connections to all."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import signal
import socket
from contextlib import suppress

from ranktron.processes import process_environment, ranktron_command
from ranktron.service.tokens import Holder, Tokens

_PAUSE = 1.0  # seconds until a process that has ended is started again
_logger = logging.getLogger("ranktron.service")


class WorkerTokens(Tokens):
    """Tokens of others, and one that the processes of this server have."""

    def __init__(self, others: Tokens) -> None:
        super().__init__([])
        self._others, self.secret = others, secrets.token_urlsafe(32)

    def __len__(self) -> int:
        return len(self._others)

    @property
    def required(self) -> bool:
        return self._others.required

    def reload(self) -> None:
        self._others.reload()

    def holder(self, token: str) -> Holder | None:
        if hmac.compare_digest(token.encode("latin-1", "replace"), self.secret.encode()):
            return Holder("workers", frozenset({"admin"}))
        return self._others.holder(token)


class WorkerProcesses:
    """Processes that follow this one.

    Parameters
    ----------
    count : int
        How many, beside this one.
    inner : socket
        Where this process listens to them alone.
    address : (str, int)
        The address and port at which all of them serve.
    config : str, optional
        The file of settings, which is theirs, too.
    secret : str
        The token by which this process knows them.
    """

    def __init__(
        self, count: int, inner: socket.socket, address: tuple[str, int], config: str | None, secret: str
    ) -> None:
        url, (host, port) = f"http://127.0.0.1:{inner.getsockname()[1]}", address
        self._count = count
        self._running: set[asyncio.subprocess.Process] = set()
        self._command = ranktron_command("serve", "--shared", "--follow", url)
        self._command += ["--host", host, "--port", str(port), *(["--config", config] if config else [])]
        self._environment = process_environment() | {"RANKTRON_LEADER_TOKEN": secret}
        self._environment.pop("RANKTRON_JOURNAL", None)

    def reload(self) -> None:
        """Lets them read tokens and keys again."""
        for process in self._running:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGHUP)

    async def run(self) -> None:
        """Keeps them running until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._count):
                group.create_task(self._keep_one())

    async def _keep_one(self) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                stdin=asyncio.subprocess.PIPE,  # which ends with this process, whatever ends it
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
            await asyncio.sleep(_PAUSE)
