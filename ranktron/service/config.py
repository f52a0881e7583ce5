"""The configuration: settings of the store, limits of requests, settings of the server; read from a TOML file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import fields, replace

from ranktron.errors import DataError
from ranktron.store.config import Count, Seconds, StoreConfig

_PATHS = ("tokens", "carry_keys")
_VARIABLES = {"tokens": "RANKTRON_TOKENS_FILE"}  # RANKTRON_TOKENS holds the tokens themselves


class RequestLimits(StoreConfig, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits of requests: their size, number and time."""

    max_body: Annotated[Count, Meta(description="bytes of the body of a request")] = 8_000_000
    max_arriving: Annotated[Count, Meta(description="bytes of all bodies being received at one time")] = 256_000_000
    max_batch: Annotated[Count, Meta(description="requests in a batch")] = 100
    max_carry: Annotated[Count, Meta(description="characters of a sealed round (`carry`)")] = 100_000
    max_headers: Annotated[Count, Meta(description="headers of a request")] = 100
    max_header_bytes: Annotated[Count, Meta(description="bytes of a request's first line and headers")] = 32_768
    header_seconds: Annotated[Seconds, Meta(description="how long the headers of a request may take to arrive")] = 10.0
    request_seconds: Annotated[Seconds, Meta(description="how long the body of a request may take to arrive")] = 10.0
    answer_seconds: Annotated[Seconds, Meta(description="how long a request may wait for the disk")] = 30.0
    idle_seconds: Annotated[Seconds, Meta(description="how long a connection may stay open without a request")] = 75.0
    max_connections: Annotated[Count, Meta(description="connections at one time")] = 1_000
    max_connections_per_address: Annotated[
        Count, Meta(description="connections at one time of one address (IPv6: of one /64 network)")
    ] = 250
    proxies: Annotated[
        list[str], Meta(description="addresses of load balancers, exempt from the limit per address")
    ] = msgspec.field(default_factory=list)
    rate: Annotated[
        float, Meta(ge=0.0, description="requests a second of each token, with bursts of twice as many; 0: no limit")
    ] = 0.0


class Config(RequestLimits, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the service, all with defaults.

    >>> Config().max_open
    1000000
    """

    tokens: Annotated[str, Meta(description="file of tokens; a relative path starts at the folder of this file")] = ""
    carry_keys: Annotated[
        str, Meta(description="file of keys for sealed rounds (`ranktron keys`); relative as `tokens`")
    ] = ""
    log_format: Annotated[
        Literal["text", "json"], Meta(description="format of the log on standard error: lines of text, or JSON")
    ] = "text"
    log_requests: Annotated[
        bool, Meta(description="whether every request is logged; otherwise only those that fail with a 5xx")
    ] = False
    tracing: Annotated[
        bool,
        Meta(
            description="whether requests are traced with OpenTelemetry (extra `tracing`), as set by OTEL_... variables"
        ),
    ] = False
    origins: Annotated[
        list[str], Meta(description="origins of web pages that may call the service from a browser (CORS)")
    ] = msgspec.field(default_factory=list)


def read_settings(path: str | Path | None, environment: Mapping[str, str] = os.environ) -> Config:
    """The settings: the environment overrides a file, which overrides the defaults.

    In the environment, `max_open` is `RANKTRON_MAX_OPEN`, and lists are separated by commas; the file of tokens is
    `RANKTRON_TOKENS_FILE`. Relative paths start at the folder of the file that has them, or at the working directory in
    the environment.

    >>> read_settings(None, {"RANKTRON_MAX_OPEN": "1000", "RANKTRON_ORIGINS": "https://a.example,https://b.example"})
    Config(max_open=1000, ...origins=['https://a.example', 'https://b.example'])
    """
    config = Config() if path is None else read_config(path)
    changes: dict[str, Any] = {}
    for name in _PATHS:
        file = getattr(config, name)
        if file and path is not None:
            changes[name] = str(Path(path).parent / file)
    for setting in fields(Config):
        variable = _VARIABLES.get(setting.name, f"RANKTRON_{setting.name.upper()}")
        text = environment.get(variable)
        if text is None:
            continue
        is_list = isinstance(getattr(config, setting.name), list)
        value = [part.strip() for part in text.split(",") if part.strip()] if is_list else text
        try:
            parsed = msgspec.convert({setting.name: value}, Config, strict=False)
        except msgspec.ValidationError as error:
            raise DataError(f"the environment's {variable}: {str(error).partition(' - at ')[0]}") from None
        changes[setting.name] = getattr(parsed, setting.name)
    return replace(config, **changes)


def read_config(path: str | Path) -> Config:
    """The settings of a file, with defaults for the rest."""
    try:
        settings = tomllib.loads(Path(path).read_text("utf-8"))
        return msgspec.convert(settings, Config)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise DataError(f"{path}: {error}") from None
