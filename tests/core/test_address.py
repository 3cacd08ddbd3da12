"""No password is shown or logged with the address of a database, wherever it stands and however its name is spelt."""

from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict

from pegword.core import address
from pegword.core.address import without_password

NAMES = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
CANARY = "s3cr3t"
SECRETS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12).map(
    lambda text: f"{CANARY}{text}{CANARY}"
)


def spellings(name: str, *, cases: bool = False) -> st.SearchStrategy[str]:
    """*name* with any of its characters percent-encoded, with hex digits of both cases; and, with *cases*, in either case itself."""
    ways = [
        [c, f"%{ord(c):02x}", f"%{ord(c):02X}", *([c.upper(), f"%{ord(c.upper()):02x}"] if cases else [])] for c in name
    ]  # fmt: skip
    return st.tuples(*map(st.sampled_from, ways)).map("".join)


ANY_NAME = st.sampled_from(NAMES).flatmap(lambda name: spellings(name, cases=True))


def check_hidden(name: str, secret: str, first: bool, user: str, port: str) -> None:
    pairs = [f"{name}={quote(secret, safe='=?@:/')}", "application_name=tea", "connect_timeout=3"]
    shown = without_password(f"postgresql://{user}db.example{port}/pegword?{'&'.join(pairs if first else pairs[::-1])}")

    assert CANARY not in shown
    assert "db.example" in shown or "@" in secret
    assert f"{port}/pegword?" in shown or "@" in secret
    assert "connect_timeout=3" in shown or not first or "@" in secret


@given(
    name=ANY_NAME,
    secret=SECRETS,
    first=st.booleans(),
    user=st.sampled_from(["", "sam@", "sam:s3cr3t@", "sam:s3cr3t@s3cr3t:/?@"]),
    port=st.sampled_from(["", ":5432"]),
)
@example(name="password", secret="s3cr3t@s3cr3t", first=False, user="sam:s3cr3t@", port="")
@example(name="sslpassword", secret="s3cr3t@s3cr3t", first=False, user="", port=":5432")
@example(name="password", secret="s3cr3t@s3cr3t@s3cr3t", first=True, user="sam:s3cr3t@", port=":5432")
def test_no_spelling_of_a_name_shows_its_value_in_an_address(name: str, secret: str, first: bool, user: str, port: str) -> None:
    """The rest of the address is shown."""
    check_hidden(name, secret, first, user, port)


@given(secret=st.from_regex(rf"{CANARY}[a-z0-9'\\ ]*{CANARY}", fullmatch=True), data=st.data())
def test_what_the_driver_takes_for_a_secret_in_an_address_is_hidden(secret: str, data: st.DataObject) -> None:
    """The judge of what a name means is the driver that reads the address."""
    known = data.draw(st.sampled_from([name for name in NAMES if name in ("password", "sslpassword")]))
    url = f"postgresql://db.example/pegword?{data.draw(spellings(known))}={quote(secret)}&connect_timeout=3"

    assert secret == conninfo_to_dict(url)[known]
    assert CANARY not in without_password(url)


@given(secret=st.from_regex(rf"{CANARY}[a-z&@'\\ ]*{CANARY}", fullmatch=True), blanks=st.sampled_from(["=", " = ", "\t=", "= "]))
def test_what_the_driver_takes_for_a_secret_among_parameters_is_hidden(secret: str, blanks: str) -> None:
    """In quotes or not, with whatever stands in it."""
    escaped = secret.replace("\\", "\\\\").replace("'", "\\'")
    for value in (f"'{escaped}'", escaped.replace(" ", "\\ ")):
        text = f"host=db.example password{blanks}{value} dbname=pegword"

        assert secret == conninfo_to_dict(text)["password"]
        assert CANARY not in without_password(text)
        assert without_password(text).startswith("host=db.example ")
        assert without_password(text).endswith(" dbname=pegword")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://sam:tea@db/x?sslmode=require", "postgresql://sam:***@db/x?sslmode=require"),
        ("postgresql://sam@db:5432/x", "postgresql://sam@db:5432/x"),
        ("postgresql://db/x?pass%77ord=tea&user=sam", "postgresql://db/x?pass%77ord=***&user=sam"),
        ("postgresql://db/x?%50%41SSWORD=tea", "postgresql://db/x?%50%41SSWORD=***"),
        ("postgresql://db/x?password%3Dtea=1", "postgresql://db/x?password%3D***"),
        ("postgresql://db/x?password=tea two\nthree", "postgresql://db/x?password=***"),
        ("host=db password='tea two' user=sam", "host=db password=*** user=sam"),
        ("host=db password=tea\\ two user=sam", "host=db password=*** user=sam"),
        ("host=db password='never closed", "host=db password=***"),
        ("sqlite:///srv/password/x.db", "sqlite:///srv/password/x.db"),
    ],
)
def test_how_it_is_shown(url: str, shown: str) -> None:
    assert shown == without_password(url)


def test_a_spelling_that_is_not_known_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: names as they are, and not percent-encoded."""
    plain = address.re.compile(r"(://[^:/?@]*):.*@|(password=)[^&]*", address.re.IGNORECASE | address.re.DOTALL)
    monkeypatch.setattr(address, "_IN_ADDRESS", plain)
    with pytest.raises(AssertionError):
        check_hidden("pass%77ord", f"{CANARY}{CANARY}", True, "", "")
