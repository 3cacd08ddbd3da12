"""Everything that can go wrong, as one tree.

    PegwordError
    ├── Invalid              what was sent cannot be used; names the field
    │   └── NewerDatabase    the database was written by a newer Pegword, or is none of ours
    ├── Unauthenticated      no credential, or one that does not hold
    ├── Forbidden            a good credential that may not do this
    ├── NotFound             absent, or hidden: the two answer alike
    ├── Conflict             the stored state does not allow this
    │   ├── VersionMismatch  somebody changed the memory in between
    │   └── Damaged          what is stored does not match its hash
    ├── TooLarge             a body or a set above its limit
    └── Unavailable          not now; the same call may work later
        ├── Busy             the database is locked by somebody else
        ├── DiskFailed       the disk did not do what it was asked
        ├── ReadOnly         the database can be read, not written
        └── StorageFull      no room on the disk

Each error carries one sentence for a person (`str(error)`), a `code` for programs and, where one
field is at fault, its name. Faces map classes to their own statuses; nothing here knows a wire.
"""


class PegwordError(Exception):
    """The root: catch this to catch everything that Pegword raises on purpose."""

    code = "error"

    def __init__(self, sentence: str, *, field: str = "", code: str = "") -> None:
        super().__init__(sentence)
        self.field = field
        if code:
            self.code = code


class Invalid(PegwordError):
    """What was sent cannot be used. `field` names the part at fault."""

    code = "invalid"


class NewerDatabase(Invalid):
    """The database belongs to a newer Pegword, or to another program."""

    code = "newer_database"


class Unauthenticated(PegwordError):
    """There is no credential, or it is unknown, expired or revoked."""

    code = "unauthenticated"


class Forbidden(PegwordError):
    """The credential is good, but may not do this."""

    code = "forbidden"


class NotFound(PegwordError):
    """There is no such thing, or the caller may not know of it."""

    code = "not_found"


class Conflict(PegwordError):
    """The stored state does not allow this."""

    code = "conflict"


class VersionMismatch(Conflict):
    """The memory is not at the version that the caller expected; `current` is the one it is at (0 = absent)."""

    code = "version_mismatch"

    def __init__(self, sentence: str, *, current: int) -> None:
        super().__init__(sentence, field="expected_version")
        self.current = current


class Damaged(Conflict):
    """A stored memory does not match its own hash, so it is reported and not served."""

    code = "damaged"


class TooLarge(PegwordError):
    """A body is above its limit."""

    code = "too_large"


class Unavailable(PegwordError):
    """Not now. `retry_after_s` says when to ask again, in seconds."""

    code = "unavailable"

    def __init__(self, sentence: str, *, field: str = "", code: str = "", retry_after_s: int = 1) -> None:
        super().__init__(sentence, field=field, code=code)
        self.retry_after_s = retry_after_s


class Busy(Unavailable):
    """Another process holds the database for longer than we wait."""

    code = "busy"


class DiskFailed(Unavailable):
    """The disk did not do what it was asked. Where it is not known whether a change was saved, `code` is ``in_doubt``."""

    code = "disk_failed"


class ReadOnly(Unavailable):
    """The database can be read but not written."""

    code = "read_only"


class StorageFull(Unavailable):
    """The disk is full. Nothing was saved; reads go on."""

    code = "storage_full"
