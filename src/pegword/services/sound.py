"""Whether all that is stored is sound, as far as a program can tell: for copies before they count, and for whoever asks."""

from pegword.core.text import Analyser, Document
from pegword.services.progress import Progress, Steps
from pegword.store import index_check, soundness
from pegword.store.engine import Tx

FAULTS_TOLD_MAX = 20
HOLDING = "holding the index against the memories"


def faults_of_rows(tx: Tx, progress: Progress) -> list[str]:
    """Which memories and versions are not sound, the first `FAULTS_TOLD_MAX` of each by name and the number of the others."""
    faults: list[str] = []
    for what, look in (("memories", soundness.memories), ("versions", soundness.versions)):
        found = soundness.Found()
        look(tx, found, lambda _, what=what, found=found: progress(f"reading {what}", found.looked_at, 0))  # type: ignore[misc]
        faults += found.named
        if found.faulty > len(found.named):
            faults.append(f"{found.faulty - len(found.named)} more {what} are not sound")
    return faults


def faults_of_index(tx: Tx, analyser: Analyser, progress: Progress) -> list[str]:
    """What of the index does not agree with the memories that it is made from, the first `FAULTS_TOLD_MAX` of it: its sums, and the
    postings of every scope that *analyser* made."""

    def analyse(name: str, description: str, content: str, tags: tuple[str, ...]) -> Document:
        return analyser.document(content, (name, description, *tags))

    faults: list[str] = []
    scopes = index_check.sums(tx, faults.append)
    step = Steps(progress, HOLDING, sum(scope.n for scope in scopes))
    for scope in scopes:
        if scope.analyser == analyser.name:
            index_check.postings(tx, scope, analyse, faults.append, progress=step)
        if len(faults) >= FAULTS_TOLD_MAX:
            break
    return faults[:FAULTS_TOLD_MAX]
