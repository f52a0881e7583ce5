"""The command line: parse options, call one function, print."""

from ranktron.cli.main import main

__all__ = ["main"]
