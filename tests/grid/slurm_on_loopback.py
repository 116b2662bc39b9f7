"""A Slurm of one node on this machine's loopback, in a temporary folder, for as long as a test."""

from __future__ import annotations

import getpass
import os
import platform
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel")
READY = 30.0
"""Seconds it may take until the node takes jobs."""

CONFIGURATION = """\
ClusterName=loopback
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.sock,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
ReturnToService=2
KillWait=5
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=tests Nodes=one Default=YES MaxTime=60 State=UP
"""


class CannotRunError(Exception):
    """Why there is no Slurm here."""


@contextmanager
def start_slurm() -> Iterator[dict[str, str]]:
    """Start it, give the environment in which its commands find it, and end it."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    for program in PROGRAMS:
        if shutil.which(program, path=path) is None:
            raise CannotRunError(f"there is no {program} (Debian: slurm-wlm and munge)")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))  # sockets: a pytest folder's name is too long
    environment = {**os.environ, "PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        _configure(folder)
        munged = ["munged", "--foreground", "--force", "--num-threads=1"]
        for name, file in (("key", "key"), ("seed", "seed"), ("pid", "munged.pid")):
            munged.append(f"--{name}-file={folder / 'munge' / file}")
        for command in (
            [*munged, f"--socket={folder / 'munge.sock'}"],
            ["slurmctld", "-D", "-i"],
            ["slurmd", "-D", "-N", "one"],
        ):
            stack.enter_context(_daemon(command, environment, folder / f"{command[0]}.log"))
            if command[0] == "munged":
                _until((folder / "munge.sock").exists, folder)
        _until(lambda: _idle(environment), folder)
        yield {"PATH": path, "SLURM_CONF": environment["SLURM_CONF"]}


def _configure(folder: Path) -> None:
    folder.chmod(0o755)
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(mode=0o700)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    control, node = _free_ports(2)
    (folder / "slurm.conf").write_text(
        CONFIGURATION.format(
            host=platform.node().partition(".")[0],
            user=getpass.getuser(),
            folder=folder,
            control=control,
            node=node,
        )
    )


@contextmanager
def _daemon(command: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=file)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        every = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in every:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in every]


def _idle(environment: dict[str, str]) -> bool:
    state = subprocess.run(
        ["sinfo", "--noheader", "--format=%t"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return state.stdout.strip() == "idle"


def _until(ready, folder: Path) -> None:
    end = time.monotonic() + READY
    while not ready():
        if time.monotonic() > end:
            logs = (path.read_text(errors="replace") for path in sorted(folder.glob("*.log")))
            raise CannotRunError("Slurm does not start here: " + " | ".join(logs)[-2000:])
        time.sleep(0.1)
