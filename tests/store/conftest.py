"""The store is tried through a service in the same process."""

from tests.service.conftest import *  # noqa: F403
