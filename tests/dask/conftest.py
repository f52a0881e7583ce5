import pytest


@pytest.fixture(scope="session")
def client():
    """A cluster of two processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", memory_limit="2GB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
