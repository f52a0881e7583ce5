"""The workers of a Dask cluster: pure functions are sent to them, data stay where they are."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ranktron.dask.tasks import CACHE
from ranktron.errors import DataError, MissingExtra

MEMORY_SHARE = 0.4
"""The share of its memory in which a worker caches parts."""


def import_distributed() -> Any:
    """Imports Dask; without it the error says how to install it."""
    try:
        import distributed
    except ImportError:
        raise MissingExtra("training on a Dask cluster", "dask") from None
    return distributed


class Answer:
    """The future of a task, which turns errors of the cluster into one sentence."""

    def __init__(self, future: Any) -> None:
        self.future = future

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the result."""
        distributed = import_distributed()
        try:
            return self.future.result(timeout)
        except distributed.TimeoutError:
            raise TimeoutError(f"there is no result after {timeout} seconds") from None
        except distributed.KilledWorker as error:
            raise DataError(
                f"worker {error.last_worker.address} and those before it died while they ran a task, perhaps for want "
                "of memory: use smaller parts or more memory; the model after the last pass can be continued"
            ) from None
        except (distributed.CancelledError, distributed.comm.CommClosedError, OSError) as error:
            raise DataError(
                f"the connection to the Dask scheduler is lost ({type(error).__name__}); the model after the last pass "
                "can be continued"
            ) from None


class Cluster:
    """The workers of a Dask client.

    Each task goes to the worker that has its data cached, or to another one if that is gone: tasks are pure functions,
    so that any worker may run them, any number of times.

    Parameters
    ----------
    client : distributed.Client
        The connection to the scheduler.

    Examples
    --------
    >>> from distributed import Client
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     Cluster(client).submit(max, 1, 2, home=0).result()
    2
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self.addresses = sorted(client.nthreads())
        if not self.addresses:
            client.wait_for_workers(1, timeout=60)
            self.addresses = sorted(client.nthreads())

    def submit(self, function: Callable[..., Any], /, *arguments: Any, home: int) -> Any:
        """Submits a function to the worker of that home.

        Parameters
        ----------
        function : callable
            A pure function.
        *arguments
            Its arguments; futures of earlier tasks are resolved on the worker, also those in lists.
        home : int
            The same number for the same data.
        """
        worker = self.addresses[home % len(self.addresses)]
        future = self.client.submit(
            on_worker, function, *map(as_future, arguments), pure=False, workers=[worker], allow_other_workers=True,
            key=f"{function.__name__}-{os.urandom(8).hex()}",
        )  # fmt: skip
        return Answer(future)


def as_future(argument: Any) -> Any:
    """The argument with Dask's own futures in place of answers, also in lists."""
    if isinstance(argument, list):
        return [as_future(each) for each in argument]
    return argument.future if isinstance(argument, Answer) else argument


def on_worker(function: Callable[..., Any], *arguments: Any) -> Any:
    """Runs a function on a worker, after limiting its cache to a share of its memory."""
    limit = getattr(import_distributed().get_worker().memory_manager, "memory_limit", None)
    if limit:
        CACHE.limit = int(MEMORY_SHARE * limit)
    return function(*arguments)


@contextmanager
def open_client(address: Any = None) -> Iterator[Any]:
    """A client: of a scheduler's address, of a new local cluster, of this process, or the given one.

    Parameters
    ----------
    address : str, distributed.Client or None
        The address of a scheduler (`tcp://host:8786`), "local" for a new cluster with a process for each processor, a
        client, or None for the current client of this process.

    Examples
    --------
    >>> from distributed import Client
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as mine:
    ...     with open_client() as client:
    ...         client is mine
    True
    """
    distributed = import_distributed()
    if address is None:
        try:
            yield distributed.get_client()
        except ValueError:
            raise DataError(
                "there is no Dask client: make one with distributed.Client(...), or name a scheduler's address"
            ) from None
    elif not isinstance(address, str):
        yield address
    elif address == "local":
        count = os.cpu_count() or 1
        options = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}  # the client reports errors
        os.environ["PYTHONSAFEPATH"] = "1"  # workers and their helpers must not import from the current folder
        with (
            distributed.LocalCluster(n_workers=count, threads_per_worker=1, **options) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
    else:
        try:
            client = distributed.Client(address, timeout=10)
        except (OSError, TimeoutError, ValueError) as error:
            raise DataError(f"no Dask scheduler answers at {address}: {error}") from None
        with client, _quiet():
            yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps Dask from logging tracebacks of a lost connection, which is reported as one error."""
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        log.setLevel(level)
