"""Disks that fail: a layer between SQLite and the file system, under the same engine that serves.

`Disk` asks its *fault* before all that SQLite asks for. `PowerDisk` knows what has been flushed, and can make the files what they may be
after the power was cut: everything flushed is there; of the rest, any part.
"""

import errno
import itertools
import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import apsw

SECTOR = 512
_numbers = itertools.count()
_ACTIONS = {"write": apsw.SQLITE_IOERR_WRITE, "flush": apsw.SQLITE_IOERR_FSYNC, "cut": apsw.SQLITE_IOERR_TRUNCATE,
            "remove": apsw.SQLITE_IOERR_DELETE, "flush names": apsw.SQLITE_IOERR_DIR_FSYNC, "read": apsw.SQLITE_IOERR_READ}  # fmt: skip

# Told of each action: what it is (write, flush, cut, remove, flush names, read) and the file's name. It may raise, or end the process.
Fault = Callable[[str, str], None]


class Disk(apsw.VFS):
    """The file system, until *fault* says otherwise. Register it by making it; `unregister` when done.

    *over* is the layer below, "" for the usual one; it must be named where this one is to be the usual one.
    """

    def __init__(self, fault: Fault = lambda *_: None, over: str = "") -> None:
        self.name = f"faulty-{next(_numbers)}"
        self.over = over
        self.fault = fault
        self.said = 0  # the number of the system's error that is pretended
        super().__init__(self.name, over)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "DiskFile":  # noqa: N802
        return DiskFile(self, name, flags)

    def xDelete(self, path: str, flush: bool) -> None:  # noqa: N802
        self.fault("remove", Path(path).name)
        super().xDelete(path, flush)
        if flush:
            self.fault("flush names", Path(path).name)

    def xGetLastError(self) -> tuple[int, str]:  # noqa: N802
        return (self.said, os.strerror(self.said)) if self.said else super().xGetLastError()

    def fail(self, action: str, number: int = errno.EIO) -> None:
        """Raise what SQLite would hear if the system answered *action* with that error."""
        self.said = number
        if number == errno.ENOSPC and action == "write":
            raise apsw.FullError("no room")
        failure = apsw.IOError(os.strerror(number))
        failure.extendedresult = _ACTIONS[action]
        raise failure


class DiskFile(apsw.VFSFile):
    """One open file on a `Disk`."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self.path = (name.filename() if isinstance(name, apsw.URIFilename) else name) or ""
        self._short = Path(self.path).name
        super().__init__(disk.over, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.fault("write", self._short)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.fault("flush", self._short)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.fault("cut", self._short)
        super().xTruncate(size)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.fault("read", self._short)
        return super().xRead(amount, offset)


def kill_at(number: int) -> Fault:
    """Let the process end as by ``kill -9`` before the *number*-th action that changes something."""
    count = itertools.count(1)

    def fault(action: str, _name: str) -> None:
        if action != "read" and next(count) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return fault


@dataclass
class _Kept:
    """What the disk has of one file: what was flushed, and what was asked for since. A cut is a write without data."""

    flushed: bytearray = field(default_factory=bytearray)
    since: list[tuple[int, bytes | None]] = field(default_factory=list)
    fresh: bool = False  # its name is not on disk yet

    def flush(self) -> None:
        for at, data in self.since:
            _apply(self.flushed, at, data)
        self.since.clear()


class PowerDisk(Disk):
    """A disk whose power is cut at the *last*-th action that changes something.

    Nothing is really flushed, so that a run takes milliseconds: what would be on disk is known here.
    """

    def __init__(self, last: int) -> None:
        self.left = last
        self._kept: dict[str, _Kept] = {}
        self._gone: list[tuple[str, _Kept]] = []
        super().__init__()

    @property
    def dark(self) -> bool:
        """Whether the power has been cut."""
        return self.left <= 0

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "PowerFile":  # noqa: N802
        self.lit("read")
        return PowerFile(self, name, flags)

    def xDelete(self, path: str, flush: bool) -> None:  # noqa: N802
        self.lit("remove")
        kept = self._kept.pop(path, None)
        if kept is not None and not kept.fresh:
            self._gone.append((path, kept))
        self.act("remove")
        if flush:
            self.flush_names()
        apsw.VFS.xDelete(self, path, False)

    def lit(self, action: str) -> None:
        """Refuse *action* when the power is gone."""
        if self.dark:
            self.fail(action)

    def act(self, action: str) -> None:
        """Count one action that changes something; it is half done when the power goes."""
        self.left -= 1
        self.lit(action)

    def kept(self, path: str) -> _Kept:
        """What is known of a file, which may be new."""
        if path not in self._kept:
            there = Path(path).exists()
            self._kept[path] = _Kept(bytearray(Path(path).read_bytes() if there else b""), fresh=not there)
        return self._kept[path]

    def flush_names(self) -> None:
        """Have the folder on disk: which files there are."""
        self._gone.clear()
        for kept in self._kept.values():
            kept.fresh = False

    def after(self, chance: random.Random) -> None:
        """Make the files what they may be when the power is back."""
        share = chance.choice((0.0, 0.4, 0.4, 0.4, 1.0))  # of what was not flushed, that is there all the same
        names = {path: kept for path, kept in self._kept.items() if not kept.fresh or chance.random() < share}
        for path, kept in self._gone:  # the oldest of a name is the one that the disk knows
            if path not in names and chance.random() >= share:
                names[path] = kept
        for path in self._kept.keys() | {path for path, _ in self._gone}:
            Path(path).unlink(missing_ok=True)
            Path(f"{path}-shm").unlink(missing_ok=True)  # memory, not a file: nothing of it is left
        for path, kept in names.items():
            for at, data in kept.since:
                _apply_some(kept.flushed, at, data, share, chance)
            Path(path).write_bytes(kept.flushed)


class PowerFile(apsw.VFSFile):
    """One open file on a `PowerDisk`."""

    def __init__(self, disk: PowerDisk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        path = (name.filename() if isinstance(name, apsw.URIFilename) else name) or ""
        # What SQLite makes beside the file has its folder flushed with its first flush, as SQLite does on Unix.
        self._kept = disk.kept(path) if path else _Kept()
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self._disk.lit("read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.lit("write")
        self._kept.since.append((offset, bytes(data)))
        self._disk.act("write")
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.lit("cut")
        self._kept.since.append((size, None))
        self._disk.act("cut")
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        self._disk.lit("flush")
        self._disk.act("flush")
        self._kept.flush()
        if self._kept.fresh:
            self._disk.flush_names()


def _apply(image: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del image[at:]
        return
    if len(image) < at + len(data):
        image.extend(bytes(at + len(data) - len(image)))
    image[at : at + len(data)] = data


def _apply_some(image: bytearray, at: int, data: bytes | None, share: float, chance: random.Random) -> None:
    """Do all of it, nothing, or the sectors that chance picks; where the file grew, what was not written may be zeros."""
    if chance.random() < share:
        _apply(image, at, data)
    elif data is not None and share and chance.random() < 0.35:
        for start in range(0, len(data), SECTOR):
            if chance.random() < 0.5:
                _apply(image, at + start, data[start : start + SECTOR])
    elif data is not None and share and chance.random() < 0.1 and len(image) < at + len(data):
        image.extend(bytes(at + len(data) - len(image)))
