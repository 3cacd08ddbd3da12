"""What a look at a store finds: a state, a sentence, and what to do."""

from dataclasses import dataclass

OK, NOTE, WARNING, ERROR = STATES = ("ok", "note", "warning", "error")


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found: its *state* is one of `STATES`; *fix* is what to do, "" where that is nothing. A note can wait."""

    check: str
    state: str
    says: str
    fix: str = ""

    @property
    def must_act(self) -> bool:
        """Whether something must be done."""
        return self.state in (WARNING, ERROR)
