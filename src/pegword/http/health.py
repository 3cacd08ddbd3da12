"""Whether this process lives and can save, and what it says of itself: for probes, clients and people, without a credential."""

import msgspec

from pegword.http.routing import Answer, Call, Route


class Health(msgspec.Struct, kw_only=True):
    """All is well; anything else is an error."""

    status: str


def livez(_: Call) -> Answer:
    """Whether the process answers."""
    return Answer(Health(status="ok"))


def readyz(call: Call) -> Answer:
    """Whether memories can be read and saved."""
    call.services.health.check()
    return Answer(Health(status="ok"))


def health(call: Call) -> Answer:
    """Whether memories can be read and saved."""
    return readyz(call)


# fmt: off
ROUTES = (
    Route("GET", "/health", health, "", Health),
    Route("GET", "/readyz", readyz, "", Health),
    Route("GET", "/livez", livez, "", Health, quick=True),
)
