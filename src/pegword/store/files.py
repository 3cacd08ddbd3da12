"""A file that is there whole or not at all: written under another name, private, and given its own name when it is finished."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pegword.core.errors import Conflict, Invalid

SUFFIX = ".partial"
_BESIDE = ("-wal", "-shm", "-journal")


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """The name under which to write what becomes *path* when the block ends without an error; an empty file, of mode 0600, is there.

    What an interrupted attempt left under that name is taken away. Nothing is ever overwritten: raises `Invalid` when *path* exists,
    `Conflict` when somebody else is making it.
    """
    _require_free(path)
    partial = path.with_name(path.name + SUFFIX)
    held = _claimed(partial)
    try:
        yield partial
        _flush(partial)
        _name(partial, path)
        _flush(path.parent)
    finally:
        for name in (partial, *(Path(f"{partial}{suffix}") for suffix in _BESIDE)):
            with suppress(FileNotFoundError):
                name.unlink()
        os.close(held)


def _require_free(path: Path) -> None:
    if path.is_symlink() or path.exists():
        raise Invalid(f"{path} exists, and nothing is overwritten; name another file", field="file")
    if not path.parent.is_dir():
        raise Invalid(f"there is no folder {path.parent}", field="file")


def _claimed(partial: Path) -> int:
    """An open file at *partial*, new and empty, that nobody else holds."""
    while True:
        try:
            held = os.open(partial, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise Invalid(f"{partial} cannot be made: {error.strerror}", field="file") from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            raise Conflict(f"somebody else is writing {partial}") from None
        if os.fstat(held).st_size == 0 and _is_at(held, partial):
            os.fchmod(held, 0o600)
            return held
        # What another attempt has left, finished or not: it is taken away, not written into.
        if _is_at(held, partial):
            for name in (partial, *(Path(f"{partial}{suffix}") for suffix in _BESIDE)):
                with suppress(FileNotFoundError):
                    name.unlink()
        os.close(held)


def _is_at(held: int, path: Path) -> bool:
    """Whether the open file is the one at *path*."""
    try:
        there = path.lstat()
    except FileNotFoundError:
        return False
    mine = os.fstat(held)
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)


def _name(partial: Path, path: Path) -> None:
    """Give the finished file its name, if that is still free."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise Invalid(f"{path} exists now, and nothing is overwritten; name another file", field="file") from None
    except OSError:  # a file system without links
        _require_free(path)
        partial.rename(path)


def _flush(path: Path) -> None:
    """Have a file's bytes, or the names in a folder, on disk."""
    try:
        opened = os.open(path, os.O_RDONLY)
    except PermissionError:  # who may write into a folder need not be able to read it
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL or not path.is_dir():  # some file systems flush no folders
            raise
    finally:
        os.close(opened)
