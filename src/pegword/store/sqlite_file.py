"""The file of a SQLite database: how it is made and recognised, how a connection to it is set up, and what SQLite's errors mean.

Every commit is flushed to disk (`synchronous=FULL`; `EXTRA` with a rollback journal). WAL is used on local file systems only, elsewhere a
rollback journal.
"""

import errno
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from urllib.parse import quote

import apsw

from pegword.core.errors import Busy, Damaged, DiskFailed, Invalid, NewerDatabase, PegwordError, ReadOnly, StorageFull, Unavailable
from pegword.store.files import SUFFIX
from pegword.store.filesystem import network_file_system

APPLICATION_ID = 0x50656757  # "PegW"
BUSY_WAIT_MS = 5_000
CACHE_KIB = 16_384  # for each connection
STATEMENTS_CACHED = 256
WAL_PAGES_BEFORE_CHECKPOINT = 1_000
WAL_BYTES_KEPT = 64 << 20

RAISED = (apsw.Error, UnicodeError, OverflowError)  # what the driver raises
_MEANING: tuple[tuple[type[Exception], Callable[[str], PegwordError], str], ...] = (
    (apsw.BusyError, Busy, "another process holds the database; nothing was changed, try again"),
    (apsw.LockedError, Busy, "another process holds the database; nothing was changed, try again"),
    (apsw.ReadOnlyError, ReadOnly, "the database cannot be written to; nothing was changed"),
    (apsw.CantOpenError, Unavailable, "the database file cannot be opened"),
    (apsw.FullError, StorageFull, "the disk is full; nothing was changed"),
    (apsw.CorruptError, Damaged, "the database file is damaged; run an integrity check and restore a backup"),
    (apsw.NotADBError, Damaged, "the database file is no SQLite database"),
    (apsw.IOError, DiskFailed, "the disk did not do what it was asked; nothing was changed"),
    (apsw.ConnectionClosedError, Unavailable, "the database is closed"),
    (UnicodeDecodeError, Damaged, "a stored text is damaged: it is no UTF-8; restore it from a backup"),
    (UnicodeEncodeError, Invalid, "a text holds half of a character, which cannot be stored"),
    (OverflowError, Invalid, "a number is beyond 64 bits"),
)
# What the system said is more exact than what SQLite makes of it. That the map of the log cannot be made longer means want of room.
_NO_ROOM, _NO_WRITING = (errno.ENOSPC, errno.EDQUOT), errno.EROFS
_SIZING_FAILED = apsw.SQLITE_IOERR_SHMSIZE
_TABLES_ALTERED = re.compile("^(no such (table|column)|table .* has no column)")


@contextmanager
def meaning(connection: apsw.Connection | None = None) -> Iterator[None]:
    """Turn what apsw raises into what it means. *connection* is the one that is used, where there is one."""
    try:
        yield
    except RAISED as error:
        raise meant(error, connection) from error


def meant(error: Exception, connection: apsw.Connection | None = None) -> Exception:
    """What an exception of the driver means; one that means a fault of ours stays itself."""
    if isinstance(error, apsw.IOError | apsw.CantOpenError):
        said = _system_error(connection)
        if said in _NO_ROOM or getattr(error, "extendedresult", 0) == _SIZING_FAILED:
            return StorageFull("the disk is full; nothing was changed")
        if said == _NO_WRITING:
            return ReadOnly("the file system has become read-only; nothing was changed")
    if isinstance(error, apsw.SQLError) and _TABLES_ALTERED.search(str(error)):
        return Damaged(f"the tables are not as Pegword made them ({error}): the file is damaged, or something else has changed it")
    for kind, meaning_of, sentence in _MEANING:
        if isinstance(error, kind):
            return meaning_of(sentence)
    return error


def _system_error(connection: apsw.Connection | None) -> int:
    """The number of the system's error behind the last failure on *connection*; 0 when it cannot be told."""
    try:
        return connection.system_errno if connection is not None else 0
    except apsw.Error:
        return 0


class Use(Enum):
    """What a file is opened for."""

    STORE = "to read and to write, as others may at the same time"
    SCRATCH = "to read and to write, by one alone; nothing is kept beside it, so that the file is all of it"
    FROZEN = "to read; nobody changes it"
    LOOK = "to read, while others may write"


class SqliteFile:
    """One database file, found or made, that stays the one it was when it was opened.

    *path* is created with mode 0600 if it is absent and *create* is true. *notice* is told, in one line each, what an operator should
    know of how the file is used. *use* says what it is opened for. *vfs* names the layer of SQLite's that reaches the disk, "" for the
    usual one.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool,
        notice: Callable[[str], None],
        allow_unsafe_sqlite: bool = False,
        vfs: str = "",
        use: Use = Use.STORE,
    ) -> None:
        self.path = path
        self._name = str(path)
        self._use = use
        self._vfs = vfs or None
        _make_private(path, create)
        if use in (Use.STORE, Use.SCRATCH) and has_other_names(path):
            raise Invalid(
                f"{path} has another name too, a hard link: what two programs write under two names damages it;"
                f" keep one name and remove the others, which are found with: find / -xdev -samefile {shlex.quote(str(path))}",
                field="database",
                code="other_names",
            )
        opened = path.stat()
        self._identity = (opened.st_dev, opened.st_ino)
        self.journal = "delete" if use is Use.SCRATCH else _journal_for(path, notice, allow_unsafe_sqlite)
        # A rollback journal ends a commit by its name being removed, and only EXTRA has that on disk too.
        self._flushing = "FULL" if self.journal == "wal" else "EXTRA"
        self.read_only = use in (Use.FROZEN, Use.LOOK) or not os.access(path, os.W_OK)
        if self.read_only and use is Use.STORE:
            notice(f"{path} is not writable: reads work, every write is refused")

    def unchanging(self) -> bool:
        """Whether nobody changes the file: it lies where nothing can be written beside it, and no process has a log open."""
        if not self.read_only:
            return False
        looked_at = self._use is Use.LOOK and self.journal == "wal"
        still = self._use is Use.FROZEN or looked_at or not os.access(self.path.parent, os.W_OK)
        return still and not Path(f"{self.path}-wal").exists()

    def check(self) -> None:
        """Refuse to go on when the path leads to another file than the one that was opened: what is saved there would be lost."""
        try:
            now = os.stat(self._name)  # noqa: PTH116 - each read does it, and pathlib's takes twice the time
        except OSError:
            now = None
        if now is None or (now.st_dev, now.st_ino) != self._identity:
            raise Unavailable(
                "the database file was removed or replaced: stop Pegword, remove the files beside it ending in -wal and -shm, start again",
                code="replaced",
            )

    def connect(self, *, adopt: bool = False, reading: bool = False) -> apsw.Connection:
        """A connection with every setting. The file must be marked as ours; with *adopt*, one that is still empty is marked so.

        One for *reading* refuses to write.
        """
        with meaning():
            self.check()
            connection = apsw.Connection(*self._name_and_flags(), vfs=self._vfs, statementcachesize=STATEMENTS_CACHED)
        try:
            with meaning(connection):
                self._set_up(connection, adopt=adopt)
                if reading:
                    connection.pragma("query_only", "ON")
        except BaseException:
            connection.close(True)
            raise
        return connection

    def _set_up(self, connection: apsw.Connection, *, adopt: bool) -> None:
        connection.set_busy_timeout(BUSY_WAIT_MS)  # first, so that everything after it waits
        application = connection.pragma("application_id")
        empty = not application and not connection.execute("SELECT count(*) FROM sqlite_schema").get
        if application != APPLICATION_ID and not (adopt and empty):
            raise NewerDatabase(f"{self.path} is no database of Pegword; name another file")
        if not self.read_only:
            if connection.pragma("journal_mode") != self.journal:
                connection.pragma("journal_mode", self.journal)
            if application != APPLICATION_ID:
                self.path.chmod(0o600)
                connection.pragma("application_id", APPLICATION_ID)
            connection.pragma("synchronous", self._flushing)
            connection.pragma("secure_delete", "ON")
            connection.pragma("wal_autocheckpoint", WAL_PAGES_BEFORE_CHECKPOINT)
            connection.pragma("journal_size_limit", WAL_BYTES_KEPT)
        connection.pragma("cache_size", -CACHE_KIB)
        connection.pragma("temp_store", "MEMORY")

    def _name_and_flags(self) -> tuple[str, int]:
        """How SQLite is told to open the file."""
        if not self.read_only:
            return str(self.path), apsw.SQLITE_OPEN_READWRITE
        if self.unchanging():
            return f"file:{quote(str(self.path))}?immutable=1", apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        return str(self.path), apsw.SQLITE_OPEN_READONLY


def has_other_names(path: Path) -> bool:
    """Whether the file has another name under which it could be opened as a store: SQLite's log and its locks go by the name.

    One that a restore has left, as it does when it is killed at its end, is none: nobody opens that.
    """
    there = path.stat()
    partial = path.with_name(path.name + SUFFIX)
    try:
        left = partial.lstat()
    except OSError:
        left = None
    own = left is not None and (left.st_dev, left.st_ino) == (there.st_dev, there.st_ino)
    return there.st_nlink > 1 + own


def _make_private(path: Path, create: bool) -> None:
    """Make the file with mode 0600 if it is absent; refuse what is no regular file."""
    if path.is_symlink():
        raise Invalid(f"{path} is a symbolic link; name the file itself", field="database")
    if path.exists():
        if not stat.S_ISREG(path.stat().st_mode):
            raise Invalid(f"{path} is no regular file", field="database")
        return
    if not create:
        raise Invalid(f"there is no database at {path}", field="database")
    absent = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        for folder in (path.parent, *(made.parent for made in absent)):
            _flush_folder(folder)
    except FileExistsError:
        return
    except OSError as error:
        raise Invalid(f"{path} cannot be created: {error.strerror}", field="database") from error


def _flush_folder(folder: Path) -> None:
    """Have the names in *folder* on disk: a file that is flushed is lost all the same when its name, or its folder's, is not."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # who may write into a folder need not be able to read it
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some file systems flush no folders
            raise
    finally:
        os.close(opened)


def _journal_for(path: Path, notice: Callable[[str], None], allow_unsafe_sqlite: bool) -> str:
    """The journal mode that is safe here: WAL on a local file system with a sound SQLite, else DELETE."""
    if has_wal_race(sqlite_version()):
        shown = apsw.sqlite_lib_version()
        if not allow_unsafe_sqlite:
            raise Invalid(f"SQLite {shown} can corrupt a database in WAL mode; install apsw 3.51.3 or newer")
        notice(f"SQLite {shown} can corrupt a database in WAL mode: using a rollback journal, which is slower")
        return "delete"
    network = network_file_system(path)
    if network:
        notice(f"{path} lies on {network}, where WAL is not safe: using a rollback journal, which is slower")
        return "delete"
    return "wal"


def sqlite_version() -> tuple[int, ...]:
    """The version of the SQLite in use."""
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


def has_wal_race(version: tuple[int, ...]) -> bool:
    """Whether this SQLite has the WAL-reset race: 3.7.0 to 3.51.2, but for the repaired 3.44.6 and 3.50.7."""
    if not (3, 7, 0) <= version < (3, 51, 3):
        return False
    return not ((3, 44, 6) <= version < (3, 45, 0) or (3, 50, 7) <= version < (3, 51, 0))
