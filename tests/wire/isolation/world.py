"""The world of the matrix: people, what they keep where, who asks, and what each of them may see and change, written down by hand."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from pegword.core.caller import (
    GLOBAL,
    Caller,
    Scope,
    coordinator_scope,
    project_scope,
    shared_workstream,
    user_scope,
    workstream_scope,
)
from pegword.core.memory import Draft, checked
from pegword.services.bundle import Services
from pegword.store import removing
from tests.wire.conftest import Site

NAME, WORD = "vault", "quokka"
MESSAGE = {"role": "user", "content": f"Who has the {WORD} {NAME}?"}


@dataclass(frozen=True)
class Place:
    """A scope of somebody's, with one memory in it whose two versions both hold the place's own secret word."""

    name: str
    scope: Scope
    keeper: Caller
    archived: bool = False

    @property
    def secret(self) -> str:
        return f"zx{''.join(c for c in self.name if c.isalpha())}zx"

    @property
    def says(self) -> dict[str, str]:
        """How a request would name it."""
        return {"scope": self.scope.kind, "scope_id": self.scope.id}


@dataclass
class Asker:
    """Somebody who asks, in a session or outside of any; *reads* and *writes* are the names of the places that are theirs."""

    name: str
    client: httpx2.Client
    user: str
    session: str = ""
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    gone: bool = False  # the session is closed, or somebody else's
    receipt: str = ""


@dataclass
class World:
    """Everything that there is, as `built`."""

    services: Services
    places: dict[str, Place]
    askers: list[Asker]
    users: dict[str, Caller]
    sessions: dict[str, str]
    owners: dict[str, str]  # of what is shared: the name of the asker who may change it
    ids: dict[str, str] = field(default_factory=dict)

    def keep(self, place: Place) -> None:
        """Put the one memory of *place* where it belongs, in two versions."""
        drafts = [
            checked(Draft(NAME, f"The {WORD} {text} {place.secret}.", place.scope, description=f"of {place.secret}"))
            for text in ("was", "is")
        ]
        put = self.services.memories.writing.put
        saved = self.services.engine.write(lambda tx: [put(tx, place.keeper, draft, "save")[0] for draft in drafts])
        self.ids[place.name] = saved[0].memory.memory_id

    def restore(self, place: Place) -> None:
        """Put *place* back to what it was."""
        self.services.engine.write(lambda tx: removing.ask(tx, place.scope.key, self.services.clock()))
        removing.run(self.services.engine, place.scope.key, lambda _: None)
        self.keep(place)

    def reopen(self) -> None:
        """Put every session back to what it was."""
        rows = [(None if session_id != self.sessions["closed"] else 1, session_id) for session_id in self.sessions.values()]
        self.services.engine.write(
            lambda tx: tx.run_many("UPDATE sessions SET closed_at = CAST(? AS BIGINT), resumed_at = NULL WHERE session_id = ?", rows)
        )

    def state(self) -> dict[str, object]:
        """All that writes could change, by place; what is shared, and the sessions of each user, beside it."""
        with self.services.engine.read() as tx:
            rows = tx.rows("SELECT scope_key, memory_id, name, content, version, verified_at FROM structured_memories ORDER BY memory_id")
            shared = tx.rows("SELECT scope_key, owner, title, archived_at, deleted_at FROM shared_scopes ORDER BY scope_key")
            members = tx.rows("SELECT scope_key, user_id, may_write FROM scope_members ORDER BY scope_key, user_id")
            sessions = tx.rows("SELECT user_id, session_id, kind, closed_at, resumed_at FROM sessions ORDER BY session_id")
        names = {place.scope.key: place.name for place in self.places.values()}
        state: dict[str, object] = {}
        for kind, table in (("", rows), ("shared ", shared), ("members ", members), ("sessions ", sessions)):
            for key, *rest in table:
                state.setdefault(f"{kind}{names.get(key, key)}", []).append(rest)  # type: ignore[attr-defined]
        return state


_OWNERS = {"p": "alice who approves", "r": "alice who approves", "s": "host", "t": "host"}


def built(server: Site) -> World:
    """A new world on the store of *server*."""
    services = server.services
    assert services is not None
    users = {name: services.access.agent(services.access.ensure_user(name), f"key:{name}") for name in ("alice", "bob", "dora", "host")}
    alice, bob, host = users["alice"], users["bob"], users["host"]
    approver = services.access.person(services.access.user("alice"))
    his = services.access.person(services.access.user("bob"))
    operator = services.access.operator(services.access.user("host"))
    share = services.sharing.create
    p, r = (share(approver, "project", f"title{n}", m).scope for n, m in (("p", {"bob": False, "dora": False}), ("r", {})))
    q = share(his, "project", "titleq").scope
    s = share(operator, "workstream", "titles", {"alice": True, "bob": False}).scope
    t = share(operator, "workstream", "titlet", {"bob": True}).scope
    places = [
        Place("global", GLOBAL, alice), Place("alice user", user_scope(alice), alice), Place("bob user", user_scope(bob), bob),
        Place("alice ws one", workstream_scope(alice, "ws1"), alice), Place("alice ws two", workstream_scope(alice, "ws2"), alice),
        Place("bob ws one", workstream_scope(bob, "ws1"), bob), Place("alice coordinator", coordinator_scope(alice.user_id), alice),
        Place("bob coordinator", coordinator_scope(bob.user_id), bob), Place("p", p, alice), Place("q", q, bob),
        Place("r", r, alice, archived=True), Place("s", s, alice), Place("t", t, bob),
    ]  # fmt: skip
    assert {project_scope(p.id), shared_workstream(s.id)} == {p, s}
    world = World(services, {place.name: place for place in places}, [], users, {}, _OWNERS)
    for place in places:
        world.keep(place)
    sessions = _sessions(services, users, {"p": p.id, "q": q.id, "r": r.id, "s": s.id})
    services.sharing.change(approver, "project", r.id, archived=True)
    services.sharing.drop_member(approver, "project", p.id, "dora")
    world.sessions = sessions
    world.reopen()
    world.askers = [*_principals(server), *_in_sessions(server, sessions)]
    for asker in world.askers:
        asker.receipt = _receipt(asker)
    services.housekeeper.settle()
    assert host.user_id
    return world


def _sessions(services: Services, users: dict[str, Caller], shared: dict[str, str]) -> dict[str, str]:
    """One session of each kind and for each reason, by what it is called here; its id."""
    operator = services.access.operator(services.access.user("host"))

    def make(caller: Caller, **said: Any) -> str:
        return services.sessions.create(caller, **said).session_id

    alice, bob, dora = users["alice"], users["bob"], users["dora"]
    made = {
        "interactive": make(alice, workstream_id="ws1"),
        "bare": make(alice),
        "coordinator": make(alice, kind="coordinator", workstream_id="ws1", project_id=shared["p"]),
        "project": make(alice, project_id=shared["p"]),
        "archived": make(alice, project_id=shared["r"]),
        "shared": make(alice, workstream_id=shared["s"], shared=True),
        "closed": make(alice, workstream_id="ws1"),
        "bob": make(bob, workstream_id="ws1"),
        "bob reads project": make(bob, project_id=shared["p"]),
        "bob reads shared": make(bob, workstream_id=shared["s"], shared=True),
        "bob coordinator": make(bob, kind="coordinator"),
        "dora left project": make(dora, project_id=shared["p"]),
        "host for alice": make(operator, user="alice", workstream_id="ws1"),
        "host coordinator for alice": make(operator, kind="coordinator", user="alice"),
        "anonymous": make(operator, anonymous=True, workstream_id="ws1"),
    }
    made["child"] = make(alice, parent_id=made["interactive"])
    made["child of coordinator"] = make(alice, parent_id=made["coordinator"])
    return made


_ALICE = frozenset({"global", "alice user"})
_BOB = frozenset({"global", "bob user"})
_ALICE_ONE = _ALICE | {"alice ws one"}
_ALL_OF_ALICE = _ALICE_ONE | {"alice ws two"}


def _principals(server: Site) -> Iterator[Asker]:
    """Those who ask outside of sessions."""
    nothing: frozenset[str] = frozenset()
    for name, user, right, reads, writes in (
        ("alice", "alice", "write", _ALL_OF_ALICE, _ALL_OF_ALICE),
        ("alice who only reads", "alice", "read", _ALL_OF_ALICE, nothing),
        ("alice who approves", "alice", "approve", _ALL_OF_ALICE, _ALL_OF_ALICE),
        ("bob", "bob", "write", _BOB | {"bob ws one"}, _BOB | {"bob ws one"}),
        ("dora", "dora", "write", frozenset({"global"}), frozenset({"global"})),
        ("host", "host", "service", frozenset({"global"}), frozenset({"global"})),
    ):
        yield Asker(name, server.client(server.token(user, right)), user, "", reads, writes)


def _in_sessions(server: Site, sessions: dict[str, str]) -> Iterator[Asker]:
    """Those who ask in a session: their own, and, to no avail, a closed one and others'."""
    clients = {name: server.client(server.token(name)) for name in ("alice", "bob", "dora")}
    clients["host"] = server.client(server.token("host", "service"))
    reader = server.client(server.token("alice", "read"))
    everything = {
        "interactive": ("alice", _ALICE_ONE, _ALICE_ONE),
        "bare": ("alice", _ALICE, _ALICE),
        "child": ("alice", _ALICE_ONE, _ALICE_ONE),
        "coordinator": ("alice", {"alice coordinator"}, {"alice coordinator"}),
        "child of coordinator": ("alice", _ALICE_ONE | {"p"}, _ALICE_ONE | {"p"}),
        "project": ("alice", _ALICE | {"p"}, _ALICE | {"p"}),
        "archived": ("alice", _ALICE, _ALICE),
        "shared": ("alice", _ALICE | {"s"}, _ALICE | {"s"}),
        "bob": ("bob", _BOB | {"bob ws one"}, _BOB | {"bob ws one"}),
        "bob reads project": ("bob", _BOB | {"p"}, _BOB),
        "bob reads shared": ("bob", _BOB | {"s"}, _BOB),
        "bob coordinator": ("bob", {"bob coordinator"}, {"bob coordinator"}),
        "dora left project": ("dora", {"global"}, {"global"}),
    }
    for name, (user, reads, writes) in everything.items():
        yield Asker(f"{user} in {name}", clients[user], user, sessions[name], frozenset(reads), frozenset(writes))
    for name, user, reads in (
        ("host for alice", "alice", _ALICE_ONE), ("host coordinator for alice", "alice", frozenset({"alice coordinator"})),
        ("anonymous", "host", frozenset({"global"})),
    ):  # fmt: skip
        yield Asker(f"host in {name}", clients["host"], user, sessions[name], reads, reads)
    yield Asker("alice in what the host made", clients["alice"], "alice", sessions["host for alice"], _ALICE_ONE, _ALICE_ONE)
    yield Asker("alice who only reads, in interactive", reader, "alice", sessions["interactive"], _ALICE_ONE)
    yield Asker("alice who only reads, in coordinator", reader, "alice", sessions["coordinator"], frozenset({"alice coordinator"}))
    for user, name in (
        ("alice", "closed"), ("bob", "interactive"), ("bob", "coordinator"), ("bob", "host for alice"), ("dora", "project"),
        ("host", "interactive"), ("host", "coordinator"), ("alice", "anonymous"), ("alice", "bob coordinator"),
    ):  # fmt: skip
        yield Asker(f"{user} in {name}, which is none of theirs", clients[user], user, sessions[name], gone=True)


def _receipt(asker: Asker) -> str:
    """Of a turn that *asker* takes in the session, "" where there is none to take."""
    session = {"session": {"id": asker.session}} if asker.session else {}
    answer = asker.client.post("/v1/api/turn", json={"messages": [MESSAGE], **session})
    assert (answer.status_code != 200) == asker.gone, (asker.name, answer.text)
    return "" if asker.gone else str(answer.json()["receipt"])
