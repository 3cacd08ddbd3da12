"""Which version of a memory a write expects to find, so that nobody overwrites what they have not seen."""

from collections.abc import Iterable
from dataclasses import dataclass

from pegword.core.errors import Invalid, VersionMismatch

VERSION_MAX = 2**63 - 1
ABSENT = 0  # the version of a memory that is not there


@dataclass(frozen=True, slots=True)
class Versions:
    """The memory is at one of *numbers*; where that is None, it is there at all."""

    numbers: frozenset[int] | None


THERE = Versions(None)
# One version (0: the memory is not there), one of several, or None: whatever is there.
Expected = int | Versions | None


def checked_expected(expected: Expected) -> Expected:
    """*expected* if it can be; `Invalid` for a number that is no version."""
    if isinstance(expected, int) and not ABSENT <= expected <= VERSION_MAX:
        raise Invalid(f"expected_version must be {ABSENT} to {VERSION_MAX}: it is {expected}", field="expected_version")
    return expected


def meets(expected: Expected, current: int) -> bool:
    """Whether a memory that is at version *current* is as *expected*."""
    if expected is None:
        return True
    if isinstance(expected, int):
        return current == expected
    return current != ABSENT if expected.numbers is None else current in expected.numbers


def require_version(name: str, current: int, expected: Expected) -> None:
    """Raise `VersionMismatch` unless the memory of that *name*, which is at version *current*, is as *expected*."""
    if meets(expected, current):
        return
    if isinstance(expected, int):
        sentence = f"Memory '{name}' is at version {current}, not at {expected}"
    elif expected is None or expected.numbers is None:
        sentence = f"Memory '{name}' is not there"
    elif not expected.numbers:
        sentence = f"Memory '{name}' is at version {current}, and nothing that was expected can be one of its versions"
    else:
        sentence = f"Memory '{name}' is at version {current}, not at {listed(expected.numbers)}"
    raise VersionMismatch(sentence, current=current)


def listed(numbers: Iterable[int]) -> str:
    """Versions as a sentence names them."""
    *most, last = (str(number) for number in sorted(numbers))
    return f"{', '.join(most)} or {last}" if most else last
