"""Start-up of every server: the limit of open files, the listening socket, compiled kernels, secrets."""

from __future__ import annotations

import math
import resource
import socket
from collections.abc import Callable
from errno import EADDRINUSE
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvicorn
from msgspec import Raw, structs

from ranktron.errors import DataError, MissingExtra
from ranktron.service.auth import Tokens
from ranktron.service.config import Config
from ranktron.service.http.connections import SPARE, Connections
from ranktron.service.telemetry import Telemetry
from ranktron.store.messages import Definition, Document
from ranktron.store.rankers.features import document_matrix
from ranktron.store.rankers.models import blank_model
from ranktron.store.rankers.stats import observed_quality

if TYPE_CHECKING:
    from ranktron.service.sealing_keys import SealingKeys
    from ranktron.service.tracing import Tracing

_OTHER_FILES = 100  # open files besides connections


def within_open_files(settings: Config) -> Config:
    """Raises the limit of open files to fit `max_connections`; lowers `max_connections` where the system refuses."""
    needed = settings.max_connections + SPARE + _OTHER_FILES
    allowed, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed in (resource.RLIM_INFINITY, -1) or allowed >= needed:
        return settings
    if hard_limit == resource.RLIM_INFINITY or hard_limit > allowed:
        allowed = needed if hard_limit == resource.RLIM_INFINITY else min(needed, hard_limit)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard_limit))
    if allowed >= needed:
        return settings
    limit = max(1, allowed - SPARE - _OTHER_FILES)
    click.echo(f"Only {allowed} files may be open: at most {limit} connections are accepted (ulimit -n).", err=True)
    return structs.replace(settings, max_connections=limit)


def check_guarded(tokens: Tokens, host: str) -> None:
    """Refuses to listen beyond this machine without tokens."""
    if not tokens and not is_loopback(host):
        raise DataError(
            f"listening at {host} without tokens would admit anyone: create a token with `ranktron token NAME`, or "
            "listen at 127.0.0.1"
        )


def open_socket(host: str, port: int, shared: bool = False) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listening.bind((host, port))
        listening.listen(1024)
    except OSError as error:
        listening.close()
        advice = ": choose another with --port" if error.errno == EADDRINUSE else ""
        raise DataError(f"cannot listen at {host}, port {port}: {error.strerror}{advice}") from None
    return listening


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def compile_kernels() -> None:
    """Warms up: compiles everything a request needs."""
    blank_model(Definition(["feature"]), Config())
    document_matrix([Document("first", Raw(b"[1.5]"))], ["feature"])
    observed_quality((1.0,))


def uvicorn_config(application: Any, settings: Config, telemetry: Telemetry) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=Connections(settings, telemetry.refused).protocol,
        ws="none",
        lifespan="off",
        proxy_headers=False,  # a client's address is that of its connection
        access_log=False,
        log_level="error",  # errors of clients are counted, not logged
        server_header=False,
        timeout_keep_alive=math.ceil(settings.idle_seconds) + 1,  # its own timeout; connections are closed earlier
        timeout_graceful_shutdown=int(settings.request_seconds) + 1,
    )


class AnnouncingServer(uvicorn.Server):
    """A server that announces its address once it accepts connections."""

    def __init__(self, config: uvicorn.Config, line: Callable[[], str]) -> None:
        super().__init__(config)
        self.line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        click.echo(self.line())


def authentication(tokens: Tokens) -> str:
    return f"{count_of(len(tokens), 'token')} accepted" if len(tokens) else "authentication off"


def count_of(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def read_sealing_keys(settings: Config) -> SealingKeys | None:
    """The keys for sealed rounds, if configured."""
    if not settings.carry_keys:
        return None
    try:
        from ranktron.service.sealing_keys import StoredSealingKeys
    except ModuleNotFoundError:
        raise MissingExtra("sealed rounds", "serve") from None
    return StoredSealingKeys(Path(settings.carry_keys))


def read_tracing(settings: Config) -> Tracing | None:
    """Tracing with OpenTelemetry, if configured."""
    if not settings.tracing:
        return None
    try:
        from ranktron.service.tracing import start_tracing

        return start_tracing()
    except ModuleNotFoundError:
        raise MissingExtra("tracing requests", "tracing") from None


def reload_secrets(tokens: Tokens, keys: SealingKeys | None) -> None:
    """Reloads tokens and keys."""
    tokens.reload()
    if keys is not None:
        keys.reload()
