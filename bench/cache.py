"""`python -m bench.cache`: what each mode of a turn costs in a conversation of 100 turns, under a provider that caches prompts.

No provider is asked: a conversation is simulated, and its requests are counted by these rules.

- A token is four characters.
- A request is read from the cache as far as it begins like an earlier request of the conversation, in whole steps of 128 tokens, when
  that is at least 1,024. The rest is read anew.
- What is read from the cache costs a tenth.
- What a turn gave is thrown away after it; messages, calls of the tool and their results stay in the conversation.

The conversation goes through topics, a few turns each, with small talk between; every fifth turn a memory is saved, and twice one is
deleted that the index names. Everything is drawn from one seed.
"""

import argparse
import math
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.negatives import small_talk
from pegword import OpenMemories, Turn
from pegword.testing import FrozenClock, memories_in_memory

TURNS = 100
MEMORIES = 300
SEED = 20_251
TOKEN_CHARS = 4
STEP_TOKENS, CACHED_TOKENS_MIN = 128, 1_024
CACHED_PRICE = 0.1
BASE_CHARS = 6_000  # instructions and tools, the same in every request
SAVE_EVERY = 5
DELETE_AT = (33, 66)
READING = "index, every pointer read"
MODES = ("none", "system", "tail", "index", READING)

_SUBJECTS = (
    "deployment replica backup invoice onboarding telemetry caching migration branding payroll accessibility search billing "
    "scheduling localisation firewall analytics newsletter warehouse certificate"
).split()
_ASPECTS = (
    "owner port schedule limit password-rotation format vendor threshold checklist contact region fallback history naming budget".split()
)
_FILLER = (
    "team decided after review that every change waits for approval because earlier attempts failed when nobody checked first so please "
    "remember this rule whenever something similar comes up again and tell others where numbers differ between environments or customers"
).split()


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the simulated conversation: what the user says and the model answers; what is saved before it."""

    user: str
    answer: str
    saves: tuple[str, str, str] | None


@dataclass(slots=True)
class Cost:
    """What a conversation cost: requests, tokens sent, of those from the cache, and tokens of memory that were sent."""

    mode: str
    requests: int = 0
    sent: int = 0
    cached: int = 0
    memory: int = 0
    indexes: set[str] = field(default_factory=set)

    @property
    def anew(self) -> int:
        """Tokens that were not in the cache."""
        return self.sent - self.cached

    @property
    def price(self) -> float:
        """In tokens that are read anew."""
        return self.anew + CACHED_PRICE * self.cached


def main() -> int:
    """Measure, and print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(f"{TURNS} turns, {MEMORIES} memories, {TURNS // SAVE_EVERY - 1} saves and {len(DELETE_AT)} deletions meanwhile, seed {SEED}\n")
    print("\n".join(table(measured())))
    return 0


def measured() -> list[Cost]:
    """The cost of the same conversation in each mode."""
    return [_cost(mode) for mode in MODES]


def table(costs: Sequence[Cost]) -> list[str]:
    """*costs* as lines of a table; prices compare with a conversation without memory."""
    none = costs[0]
    lines = [
        "| mode | requests | tokens sent | from the cache | read anew | of memory, a request | price |",
        "|---|---|---|---|---|---|---|",
    ]
    for cost in costs:
        name = f"`{cost.mode}`" if cost.mode in ("system", "tail", "index") else cost.mode
        lines.append(
            f"| {name} | {cost.requests} | {cost.sent:,} | {100 * cost.cached / cost.sent:.1f} % | {cost.anew:,} | "
            f"{cost.memory / cost.requests:,.0f} | {cost.price / none.price:.2f} |"
        )
    return lines


def steps(chance: random.Random) -> Iterator[Step]:
    """The conversation."""
    talk = small_talk(TURNS, SEED)
    subject = chance.choice(_SUBJECTS)
    for number in range(TURNS):
        if chance.random() < 0.2:
            subject = chance.choice(_SUBJECTS)
        says = f"What about the {chance.choice(_ASPECTS)} of the {subject}? {_words(chance, 12)}"
        if chance.random() < 0.25:
            says = talk[number]
        saved = (f"{subject}_learned_{number}", _content(chance, subject, chance.choice(_ASPECTS)), f"learned of {subject}")
        yield Step(says, _words(chance, chance.randrange(60, 160)), saved if number and number % SAVE_EVERY == 0 else None)


def _cost(mode: str) -> Cost:
    chance = random.Random(SEED)
    cost = Cost(mode)
    clock = FrozenClock()
    with memories_in_memory("bench", clock=clock) as memories:
        _fill(memories, chance, clock)
        with memories.session() as session:
            sent: list[list[str]] = []
            base, messages, read = _words(chance, BASE_CHARS)[:BASE_CHARS], list[str](), set[str]()
            for number, step in enumerate(steps(chance)):
                clock.advance(60)
                _change(memories, step, number)
                messages.append(f"user: {step.user}")
                turn = None if mode == "none" else session.turn(step.user, mode="index" if mode == READING else mode)
                _send(cost, sent, base, messages, turn)
                wanted = [s.memory for s in turn.shown if s.pointer and s.memory.name not in read] if turn and mode == READING else []
                if wanted:
                    read.update(memory.name for memory in wanted)
                    messages += [f"call: memory(action='get', name='{m.name}', scope='{m.scope.kind}')" for m in wanted]
                    messages += [f"result: [{m.kind}:{m.scope.kind}] {m.name} — {m.description}\n\n  {m.content}" for m in wanted]
                    _send(cost, sent, base, messages, turn)
                messages.append(f"assistant: {step.answer}")
    return cost


def _send(cost: Cost, sent: list[list[str]], base: str, messages: Sequence[str], turn: Turn | None) -> None:
    """Count one request, and remember it for those that follow."""
    in_system, in_tail = base, ""
    if turn is not None and cost.mode == "system":
        in_system = f"{base}\n\n{turn.text}"
    elif turn is not None:
        in_system, in_tail = f"{base}\n\n{turn.index}" if turn.index else base, turn.text
        cost.indexes.add(turn.index or "")
    request = [in_system, *messages, in_tail] if in_tail else [in_system, *messages]
    alike = max((_alike(request, earlier) for earlier in sent), default=0) // TOKEN_CHARS
    cost.requests += 1
    cost.sent += _tokens(request)
    cost.cached += alike // STEP_TOKENS * STEP_TOKENS if alike >= CACHED_TOKENS_MIN else 0
    cost.memory += _tokens([in_system]) - _tokens([base]) + _tokens([in_tail])
    sent.append(request)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters two requests begin with alike."""
    chars = 0
    for here, there in zip(one, other, strict=False):
        if here != there:
            return chars + next((at for at, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), min(len(here), len(there)))
        chars += len(here)
    return chars


def _tokens(texts: Sequence[str]) -> int:
    return math.ceil(sum(map(len, texts)) / TOKEN_CHARS)


def _fill(memories: OpenMemories, chance: random.Random, clock: FrozenClock) -> None:
    pairs = [(subject, aspect) for subject in _SUBJECTS for aspect in _ASPECTS]
    chance.shuffle(pairs)
    for subject, aspect in pairs[:MEMORIES]:
        clock.advance(60)
        description = f"{aspect} of the {subject}" if chance.random() < 0.7 else None
        memories.save(f"{subject}_{aspect}", _content(chance, subject, aspect), description=description, tags=[subject, aspect])


def _change(memories: OpenMemories, step: Step, number: int) -> None:
    if step.saves:
        name, content, description = step.saves
        memories.save(name, content, description=description)
    if number in DELETE_AT:
        memories.delete(memories.list(limit=200).memories[40].name)


def _content(chance: random.Random, subject: str, aspect: str) -> str:
    return f"The {aspect} of the {subject} is {chance.randrange(100, 9_999)}. {_words(chance, chance.randrange(15, 60))}."


def _words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(_FILLER) for _ in range(count))


if __name__ == "__main__":
    sys.exit(main())
