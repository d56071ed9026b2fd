"""These tests need the environment of `make far`: pyspark, and a Java. All of them share one cluster."""

import importlib.util

import pytest

from tests.far.cluster import Cluster, session

collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*.py"]


@pytest.fixture(scope="session")
def cluster():
    with Cluster() as made:
        yield made


@pytest.fixture(scope="session")
def spark(cluster):
    made = session(cluster.url, cluster.environment, cluster.folder)
    yield made
    made.stop()
