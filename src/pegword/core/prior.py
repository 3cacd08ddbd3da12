"""What a memory's own standing adds to its score: enough to settle a near tie, never to overturn a clear match."""

from pegword.core.memory import CONFIDENCE_OF_AGENT, Memory

PRIOR_MAX = 0.02  # no memory's score moves by more than this share of it

_PRIORITY = {"critical": 0.01, "high": 0.005, "normal": 0.0, "low": -0.01}
_VERIFIED = 0.005
_CONFIDENCE = 0.005  # for full confidence; doubt takes away in proportion


def prior(memory: Memory) -> float:
    """The factor on the score of *memory*, within 1 - `PRIOR_MAX` to 1 + `PRIOR_MAX`: by priority, verification and confidence."""
    sure = (memory.confidence - CONFIDENCE_OF_AGENT) / (1.0 - CONFIDENCE_OF_AGENT)
    sure = 1.0 if sure > 1.0 else -1.0 if sure < -1.0 else sure
    total = _PRIORITY[memory.priority] + (_VERIFIED if memory.verified_at is not None else 0.0) + _CONFIDENCE * sure
    return 1.0 + (PRIOR_MAX if total > PRIOR_MAX else -PRIOR_MAX if total < -PRIOR_MAX else total)
