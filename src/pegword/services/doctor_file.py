"""What can be seen of a SQLite store from outside: its file, who may read it, what it lies on, and how much room there is."""

import os
import shlex
import shutil
import stat
from pathlib import Path

from pegword.services.diagnosis import ERROR, NOTE, OK, WARNING, Finding
from pegword.store.filesystem import file_system, network_file_system
from pegword.store.sqlite_file import WAL_BYTES_KEPT, has_other_names, has_wal_race, sqlite_version

ROOM_LEAST = 16 << 20
_PASSING = {
    "tmpfs": "and is gone when the machine stops",
    "ramfs": "and is gone when the machine stops",
    "overlay": "a container's own layer perhaps, and is gone with that",
}
_BESIDE = ("", "-wal", "-shm", "-journal")


def file_findings(path: Path) -> list[Finding]:
    """The findings on the file at *path*, whether it is there or not."""
    there = _there(path)
    findings = [there]
    if there.state == ERROR:
        return findings
    findings += _permissions(path)
    findings.append(_file_system(path))
    findings.append(_room(path))
    findings.append(_sqlite())
    return findings


def _there(path: Path) -> Finding:
    shown = shlex.quote(str(path))
    if path.is_symlink():
        return Finding("file", ERROR, f"{path} is a symbolic link, and is not opened", f"name the file itself: {path.resolve()}")
    if not path.exists():
        return Finding("file", ERROR, f"there is no file {path}", "name the right one, or put a backup back: pegword restore FILE --to URL")
    if not stat.S_ISREG(path.stat().st_mode):
        return Finding("file", ERROR, f"{path} is no regular file", "name the file of the database")
    if has_other_names(path):
        fix = f"keep one name, and remove the others: find / -xdev -samefile {shown}"
        return Finding("file", ERROR, f"{path} has another name too, a hard link, and is not opened: two names would damage it", fix)
    if not os.access(path, os.R_OK):
        return Finding("file", ERROR, f"{path} cannot be read by you", f"chown {os.geteuid()} {shown}; chmod 600 {shown}")
    if path.stat().st_size == 0:
        return Finding("file", ERROR, f"{path} is empty", "if it held a store, put a backup back: pegword restore FILE --to URL")
    if not os.access(path, os.W_OK):
        fix = f"chmod u+w {shown}, or mount it to be written"
        return Finding("file", WARNING, f"{path} cannot be written to: every save is refused", fix)
    if not os.access(path.parent, os.W_OK):
        fix = f"chmod u+w {shlex.quote(str(path.parent))}"
        return Finding("file", WARNING, f"nothing can be made in {path.parent}, where SQLite keeps its log", fix)
    return Finding("file", OK, "it is there, and can be read and written")


def _permissions(path: Path) -> list[Finding]:
    open_ones = [name for suffix in _BESIDE if (name := Path(f"{path}{suffix}")).exists() and stat.S_IMODE(name.stat().st_mode) & 0o077]
    if open_ones:
        names = " ".join(shlex.quote(str(name)) for name in open_ones)
        return [Finding("permissions", WARNING, "others on this machine may read or write the memories", f"chmod 600 {names}")]
    findings = [Finding("permissions", OK, "its owner alone may read and write it")]
    if path.stat().st_uid != os.geteuid():
        fix = "run Pegword under the account that owns the file"
        findings.append(Finding("permissions", NOTE, "it belongs to another account than yours", fix))
    return findings


def _file_system(path: Path) -> Finding:
    network = network_file_system(path)
    if network:
        says = f"it lies on {network}, where locks may not hold: one machine alone may use it, and it is slow"
        return Finding("file system", WARNING, says, "move it to a local disk, or to PostgreSQL: pegword migrate --to URL")
    kind = file_system(path)
    if kind in _PASSING:
        says = f"it lies on {kind}, {_PASSING[kind]}"
        return Finding("file system", NOTE, says, "if it is to last, move it to a disk, or mount a volume there")
    return Finding("file system", OK, "it lies on a local disk")


def _room(path: Path) -> Finding:
    free, size = shutil.disk_usage(path.parent).free, path.stat().st_size
    shown = f"{free / (1 << 20):,.0f} MiB are free beside a database of {size / (1 << 20):,.0f}"
    if free < ROOM_LEAST:
        return Finding("free space", ERROR, f"{shown}: saves will soon be refused", "make room, or move it: pegword migrate --to URL")
    if free < size + WAL_BYTES_KEPT:
        return Finding("free space", WARNING, f"{shown}: a backup beside it may not fit", "make room")
    return Finding("free space", OK, "there is room for a log and for a backup")


def _sqlite() -> Finding:
    version = sqlite_version()
    if has_wal_race(version):
        shown = ".".join(map(str, version))
        return Finding("sqlite", ERROR, f"SQLite {shown} can damage a database that several use", "install apsw 3.51.3 or newer")
    return Finding("sqlite", OK, "it is a version without the fault of write-ahead logs")
