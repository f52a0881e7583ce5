"""Running the service: configuration, tokens, and a server around the application."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

from starlette.routing import BaseRoute

from ranktron.errors import DataError
from ranktron.service.app import application
from ranktron.service.config import Config, read_config
from ranktron.service.office import Office
from ranktron.service.tokens import read_tokens


def run(folder: str, config: str | None, host: str, port: int, also: Sequence[BaseRoute] = ()) -> None:
    """Serves until it is told to stop."""
    import uvicorn

    settings = Config() if config is None else read_config(config)
    path = None if config is None or not settings.tokens else Path(config).parent / settings.tokens
    tokens = read_tokens(path)
    if not tokens and not is_loopback(host):
        raise DataError(
            f"listening at {host} without tokens would let anyone in: make one with `ranktron token NAME`, or listen "
            "at 127.0.0.1"
        )
    office = Office(folder, settings)
    server = uvicorn.Server(
        uvicorn.Config(
            application(office, tokens, also),
            host=host,
            port=port,
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=int(settings.request_seconds),
            h11_max_incomplete_event_size=65536,
        )
    )
    server.run()


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
