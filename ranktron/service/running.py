"""Running the service: configuration, tokens, and a server around the application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ranktron.errors import MissingExtra
from ranktron.service.app import application
from ranktron.service.config import Config, read_config
from ranktron.service.endpoint import Action


def run(folder: str, config: str | None, host: str, port: int, more: Sequence[Action] = ()) -> None:
    """Serves until it is told to stop."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtra("serving", "serve") from None
    Path(folder).mkdir(parents=True, exist_ok=True)
    settings = Config() if config is None else read_config(config)
    uvicorn.run(application(folder, settings, more=more), host=host, port=port, access_log=False)
