"""These tests need the environment of `make far`: pyspark, and a Java."""

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["test_*.py"]
