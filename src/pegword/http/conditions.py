"""If-Match and If-None-Match: which version of a memory a write expects, as HTTP says it with entity tags."""

import re

from starlette.datastructures import Headers

from pegword.core.errors import Invalid
from pegword.core.versions import ABSENT, THERE, Expected, Versions

CONDITIONS = frozenset({"if-match", "if-none-match"})
PATTERN = r'^(\*|(W/)?"[^"]*"(, *(W/)?"[^"]*")*|[0-9]{1,18})$'

# One member of a list: a tag, or a number as it stands in bodies; or nothing, which HTTP lets stand between two commas.
_MEMBER = re.compile(r'[ \t]*(?:(?P<weak>W/)?"(?P<tag>[!#-~\x80-\xff]*)"|(?P<number>[0-9]+))?[ \t]*(?:,|\Z)')
_VERSION = re.compile(r"0|[1-9][0-9]{0,17}", re.ASCII)


def expected_of(headers: Headers) -> Expected:
    """What the conditions among *headers* expect; None when there is none.

    Tags are compared as HTTP says: a weak one, or one that is none of ours, never matches. Raises `Invalid` for what is no list of tags.
    """
    match, none_match = headers.getlist("if-match"), headers.getlist("if-none-match")
    if match and none_match:
        raise Invalid("If-Match and If-None-Match cannot both hold; send one", field="If-None-Match")
    if none_match:
        if [value.strip() for value in none_match] != ["*"]:
            raise Invalid("If-None-Match must be *, which says that there must be no such memory yet", field="If-None-Match")
        return ABSENT
    return _versions(", ".join(match)) if match else None


def _versions(text: str) -> Expected:
    if text.strip() == "*":
        return THERE
    at, members = 0, 0
    numbers: list[int] = []
    while at < len(text):
        member = _MEMBER.match(text, at)
        if member is None or (member["number"] and not _VERSION.fullmatch(member["number"])):
            raise _malformed()
        at = member.end()
        told = member["number"] or member["tag"]
        members += told is not None
        if not member["weak"] and _VERSION.fullmatch(told or ""):
            numbers.append(int(told))
    if not members:
        raise _malformed()
    return numbers[0] if members == len(numbers) == 1 else Versions(frozenset(numbers))


def _malformed() -> Invalid:
    return Invalid('If-Match must be *, or versions as the ETags of answers show them, such as "3" or "3", "4"', field="If-Match")
