"""Settings that follow their config file: what stands in ``[memory]`` may change while a program runs.

The file is looked at when settings are asked for, at most once in `LOOK_EVERY_S` seconds. What is wrong with a new one is told once, and
what was in force stays so.
"""

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from pegword.core.errors import PegwordError
from pegword.settings import SETTINGS, Settings, config_file, load

LOOK_EVERY_S = 1.0
SURE_AFTER_NS = 2_000_000_000  # a file written this shortly before it was read may have been written again without a new time
LIVE_SECTION = "memory"
# A change of the language needs another index, which is made where the database is opened.
NOT_LIVE = frozenset({"memory_language"})

_log = logging.getLogger("pegword.settings")


class LiveSettings:
    """What is in force now: call it. Safe to share between threads.

    Args:
        settings: What is in force at first, flags and all.
        config: The config file as it was named to `load`; None: the one of the environment, or the user's.
        environment: The variables that were read at first; they do not change.
        tell: Told a line when something changed or cannot be used.
        monotonic: Seconds that only grow.
        wall_ns: Nanoseconds since 1970, as the file system counts them.
    """

    def __init__(
        self,
        settings: Settings,
        config: Path | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        tell: Callable[[str], None] = _log.warning,
        monotonic: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._settings = self._read = settings
        self._config = config
        self._environment = dict(os.environ if environment is None else environment)
        self._tell = tell
        self._monotonic = monotonic
        self._wall_ns = wall_ns
        self._path, _ = config_file(config, self._environment)
        self._lock = threading.Lock()
        self._next = monotonic()
        self._mark: tuple[int, ...] | None = (0,)  # as no file has it
        self._sure = False
        self._missing = False
        self._complaint = ""

    def __call__(self) -> Settings:
        """The settings that are in force."""
        now = self._monotonic()
        if now >= self._next and self._lock.acquire(blocking=False):  # one looks, the others go on with what there is
            try:
                if now >= self._next:
                    self._look()
                    self._next = now + LOOK_EVERY_S
            finally:
                self._lock.release()
        return self._settings

    def _look(self) -> None:
        """Read the file if it is not the one that was read last."""
        mark = _mark_of(self._path)
        if mark == () or (mark == self._mark and (self._sure or mark is None)):
            self._missing = False
            return
        if mark is None and not self._missing:  # it may be about to be replaced: believe that it is gone when it still is next time
            self._missing = True
            return
        self._missing = False
        self._mark = mark
        self._sure = mark is not None and self._wall_ns() - max(mark[2:4]) > SURE_AFTER_NS
        try:
            read = load(self._config, self._environment)
        except (PegwordError, OSError, ValueError, RecursionError) as error:
            complaint = str(error)
            if complaint != self._complaint:
                self._complaint = complaint
                self._tell(f"{complaint}; what was in force stays so")
            return
        self._complaint = ""
        self._take(read)

    def _take(self, read: Settings) -> None:
        """Put into force what may change, and tell what changed."""
        before, self._read = self._read, read
        names = {f"{section}_{key}": f"{section}.{key}" for section, keys in SETTINGS.items() for key in keys}
        live = [name for name in names if name.startswith(f"{LIVE_SECTION}_") and name not in NOT_LIVE]
        new = {name: getattr(read, name) for name in live if getattr(read, name) != getattr(self._settings, name)}
        for name, value in new.items():
            self._tell(f"{names[name]} is now {_shown(value)} (from {read.origin[name]})")
        for name in names.keys() - set(live):
            said_elsewhere = self._settings.origin[name] == "the command line"
            if not said_elsewhere and getattr(read, name) != getattr(before, name):
                self._tell(f"{names[name]} was changed to {_shown(getattr(read, name))}: that is taken up at the next start")
        if read.personas != before.personas:
            self._tell("personas were changed: that is taken up at the next start")
        for warning in read.warnings:
            if warning not in self._settings.warnings:
                self._tell(warning)
        origin = {**self._settings.origin, **{name: read.origin[name] for name in live}}
        self._settings = replace(self._settings, **new, origin=origin, warnings=read.warnings)


def _mark_of(path: Path) -> tuple[int, ...] | None:
    """What tells one state of a file from another; None when there is none, () when it cannot be read twice, such as a pipe."""
    try:
        found = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value != "" else '""'
