"""The fields of a memory as a request writes them: their types, and what the documentation says of their limits.

Limits that stand under `extra_json_schema` are documented here and enforced by the rules, which say them in their own sentences.
"""

from typing import Annotated

from msgspec import Meta

from pegword.core.caller import SCOPES
from pegword.core.errors import Invalid
from pegword.core.memory import (
    CONTENT_CHARS_MAX,
    DESCRIPTION_CHARS_MAX,
    KIND_WORDS,
    NAME_CHARS_MAX,
    PRIORITIES,
    SITTING_CHARS_MAX,
    SOURCES,
    TAGS_MAX,
)
from pegword.core.versions import Expected, meets
from pegword.http.routing import Call

TAGS_SENT_MAX = 1_000  # before doubles are removed; more is refused before they are looked at

_WORD = 'general means project; "" for any'
_SCOPE = '"" for every scope that you may read'
_SCOPE_ID = "the workstream's id; for scope user your own id, or nothing"

Type = Annotated[str, Meta(description=_WORD, extra_json_schema={"enum": [*sorted(KIND_WORDS), ""]})]
ScopeWord = Annotated[str, Meta(description=_SCOPE, extra_json_schema={"enum": [*SCOPES, ""]})]
ScopeId = Annotated[str, Meta(description=_SCOPE_ID)]
OneScope = Annotated[str, Meta(extra_json_schema={"enum": [*SCOPES, ""]})]
Name = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": NAME_CHARS_MAX})]
Content = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": CONTENT_CHARS_MAX})]
Description = Annotated[str, Meta(extra_json_schema={"maxLength": DESCRIPTION_CHARS_MAX})]
Kind = Annotated[str, Meta(extra_json_schema={"enum": [*sorted(KIND_WORDS), ""]})]
Tags = Annotated[list[str], Meta(max_length=TAGS_SENT_MAX, description=f"at most {TAGS_MAX} once doubles are removed")]
Priority = Annotated[str, Meta(extra_json_schema={"enum": list(PRIORITIES)})]
Source = Annotated[str, Meta(description="who says so", extra_json_schema={"enum": list(SOURCES)})]
Confidence = Annotated[float, Meta(extra_json_schema={"minimum": 0.0, "maximum": 1.0})]
Expiry = Annotated[str | float, Meta(description="ISO 8601 (without a zone: UTC) or seconds since 1970")]
Sitting = Annotated[str, Meta(description=f"a name for what is saved together, at most {SITTING_CHARS_MAX} characters")]
SessionName = Annotated[str, Meta(description="the conversation that this comes from")]
ExpectedVersion = Annotated[int, Meta(ge=0, description="the version that the memory must be at; 0: it must not exist")]
Expired = Annotated[bool, Meta(description="also what has expired")]
Claim = Annotated[bool, Meta(description="accepted and answered with a warning: only a human verifies")]


def expected_version(call: Call, given: int | None) -> Expected:
    """The version that a write expects, as *given* beside its header or as that says; `Invalid` when the two differ."""
    if given is None:
        return call.expected_version
    if not meets(call.expected_version, given):
        raise Invalid(f"expected_version is {given}, which the header If-Match or If-None-Match rules out", field="expected_version")
    return given
