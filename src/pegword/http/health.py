"""Whether this process lives and can save, and what it says of itself: for probes, clients and people, without a credential."""

import msgspec

from pegword.http.routing import Answer, Call, Route


class Health(msgspec.Struct, kw_only=True):
    """All is well; anything else is an error."""

    status: str


def livez(_: Call) -> Answer:
    return Answer(Health(status="ok"))


def readyz(call: Call) -> Answer:
    call.services.health.check()
    return Answer(Health(status="ok"))


def health(call: Call) -> Answer:
    return readyz(call)


# fmt: off
ROUTES = (
    Route("GET", "/health", health, "", "Whether memories can be read and saved", Health),
    Route("GET", "/readyz", readyz, "", "Whether memories can be read and saved", Health),
    Route("GET", "/livez", livez, "", "Whether the process answers", Health, quick=True),
)
