"""The documentation is true: every command and program that it shows is run, and what it lists is what there is.

`PEGWORD_REWRITE=1` writes the outputs and tables anew.
"""

import os
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.cache import DELETE_AT, measured
from bench.cache import table as cache_table
from pegword import __version__
from pegword.assembly import open_services
from pegword.cli.failing import EXIT_CODES
from pegword.http.app import create_app
from pegword.settings import SETTINGS, Setting, load
from tests.cli.test_help import commands
from tests.docrunner import PROGRAMS, ROOT, Page, blocks, canonical

REWRITE = bool(os.environ.get("PEGWORD_REWRITE"))
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.glob("*.md")])
RUN = ("console", "console serve", "python", *PROGRAMS, "text output", "toml config")
RUN_ELSEWHERE = ("sql setup", "sql runtime", "sql tuning", "sql partitions")  # tests/test_operations.py
NOT_RUN = ("sh", "text", "json", "nginx")
CACHE_TABLE = re.compile(r"(<!-- cache: .*? -->\n).*?(<!-- /cache -->)", re.DOTALL)
SETTINGS_TABLE = re.compile(r"(<!-- settings: .*? -->\n).*?(<!-- /settings -->)", re.DOTALL)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def _page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.info in RUN for b in blocks(text_of(p)))], ids=_page_name)
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path) -> None:
    """Each page runs in a home folder of its own. One that has become untrue is written anew as a whole: its ids stay one story."""
    shown = text_of(page)
    runner = Page(tmp_path)
    try:
        real = _run(runner, shown)
    finally:
        runner.close()
    if REWRITE and canonical(real) != canonical(shown):
        page.write_text(real, encoding="utf-8")

    assert canonical(text_of(page)) == canonical(real)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("score 0.53", "score 0.53", True),
        ("score 0.53", "score 0.54", False),
        ('"score":1.0', '"score":0.99', False),
        ("saved 2026-11-30 20:22", "saved 2027-01-01 09:00", True),
        ('"2026-11-30T20:21:37Z"', '"2026-11-30T20:21:37.000001Z"', True),
        ("saved 2026-11-30 20:22", "saved yesterday", False),
        ("id 5e15b60b4445bc56", "id e3c0d069c2eda7ed", True),
        ("id 5e15b60b4445bc56, again 5e15b60b4445bc56", "id e3c0d069c2eda7ed, again b28d054a3b3fd226", False),
        ("key b68c96df5ce6", "id e3c0d069c2eda7ed", False),
        ("receipt ade6b0d3-ee52-44c2-bbe3-aadb135f2958", "receipt fed5b98b-2005-488e-af16-dfd81ae63596", True),
        (f"hash {'0' * 64}", f"hash {'1' * 64}", False),
        ("3 in scope", "4 in scope", False),
    ],
)
def test_what_counts_as_the_same_output(one: str, other: str, alike: bool) -> None:
    """Only what must differ from run to run may: when it was, and how things made at random are called, each by one name."""
    assert alike == (canonical(one) == canonical(other))


def _run(runner: Page, shown: str) -> str:
    """*shown* with what its blocks really print. A server is started before anything else that stands after it on the page."""
    parts, at = [], 0
    for block in blocks(shown):
        if block.info in RUN:
            parts += [shown[at : block.start], runner.run(block)]
            at = block.end
    return "".join([*parts, shown[at:]])


@pytest.mark.parametrize("page", PAGES, ids=_page_name)
def test_every_block_says_whether_it_is_run(page: Path) -> None:
    """A block of an unknown kind would be one that nobody checks."""
    assert {block.info for block in blocks(text_of(page))} <= {*RUN, *RUN_ELSEWHERE, *NOT_RUN}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=_page_name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text_of(page))

    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    linked = set(re.findall(r"\]\((docs/[^)#]+)", text_of(ROOT / "README.md")))

    assert {_page_name(page) for page in DOCS.glob("*.md")} - linked == set()


def test_every_route_is_documented_and_every_documented_route_exists(tmp_path: Path) -> None:
    """The table in http.md is held against the server's own."""
    settings = load(environment={})
    services = open_services(tmp_path / "m.db", settings)
    routes = {
        f"{route.method} {route.path.replace(':path}', '}')}": route.right or "none"
        for route in create_app(services, settings).table.routes
    }
    services.close()

    documented = re.findall(r"^\| `((?:GET|POST|PUT|PATCH|DELETE) [^`]+)` \| (\w+) \|", text_of(DOCS / "http.md"), re.MULTILINE)

    assert dict(documented) == routes


def test_every_command_is_documented() -> None:
    """Each has its name in a heading of cli.md."""
    headings = " ".join(re.findall(r"^## (.*)$", text_of(DOCS / "cli.md"), re.MULTILINE))
    leaves = [words for words in commands() if words and not any(other[:-1] == words for other in commands())]

    assert [words for words in leaves if f"pegword {' '.join(words)}" not in headings] == []


def test_every_exit_code_is_documented() -> None:
    codes = re.findall(r"^  (\d+) +(.+)$", EXIT_CODES, re.MULTILINE)

    assert codes
    for code, meaning in codes:
        assert f"| {code} | {meaning} |" in text_of(DOCS / "cli.md")


def test_the_table_of_settings_is_the_one_of_the_program() -> None:
    page = DOCS / "configuration.md"
    real = SETTINGS_TABLE.sub(lambda found: found[1] + "".join(_settings_table()) + found[2], text_of(page))
    if REWRITE and real != text_of(page):
        page.write_text(real, encoding="utf-8")

    assert text_of(page) == real


def test_the_table_of_what_modes_cost_is_the_one_that_is_measured() -> None:
    """And the conversation does what the page says: the index is made once and again after each deletion, and every request goes through
    the cache."""
    page = DOCS / "injection.md"
    costs = measured()
    real = CACHE_TABLE.sub(lambda found: found[1] + "\n".join(cache_table(costs)) + "\n" + found[2], text_of(page))
    if REWRITE and real != text_of(page):
        page.write_text(real, encoding="utf-8")

    assert text_of(page) == real
    assert [1, 1, 1, 1 + len(DELETE_AT), 1 + len(DELETE_AT)] == [max(1, len(cost.indexes)) for cost in costs]
    assert all(0 < cost.cached < cost.sent for cost in costs)


def _settings_table() -> Iterator[str]:
    yield "| setting | default | values | what it does |\n|---|---|---|---|\n"
    for section, keys in SETTINGS.items():
        for key, setting in keys.items():
            yield f"| `{section}.{key}` | {_value(setting.default)} | {_values(setting)} | {setting.says} |\n"


def _value(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"`{default}`" if isinstance(default, str) and default else str(default) or "empty"


def _values(setting: Setting) -> str:
    if setting.words:
        return ", ".join(word or "empty" for word in setting.words)
    if setting.least is not None:
        return f"{setting.least:,} to {setting.most:,}"
    return "true or false" if isinstance(setting.default, bool) else "a text"


def test_the_top_of_the_changelog_is_the_version_of_the_package() -> None:
    top = re.search(r"^## \[([^\]]+)\]", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)

    assert top is not None
    assert top[1] in ("Unreleased", __version__)
    assert f'version = "{__version__}"' in text_of(ROOT / "pyproject.toml")


def test_every_dependency_is_listed_with_its_reason() -> None:
    """The tables of CONTRIBUTING.md name what pyproject.toml asks for, and nothing else."""
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    needed = {re.split(r"[<>=~!\[; ]", requirement)[0] for group in groups for requirement in group}
    rows = [
        row
        for row in re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", text_of(ROOT / "CONTRIBUTING.md"), re.MULTILINE)
        if row[0] != "library"
    ]
    listed = [name for names, _, _ in rows for name in names.split(", ")]

    assert sorted(needed) == sorted(listed)
    assert [] == [names for names, purpose, why in rows if not purpose.strip() or not why.strip()]


def test_every_fate_of_a_memory_is_explained() -> None:
    """What a receipt can say of a memory stands in how-relevance-works.md."""
    source = "".join(text_of(ROOT / "src" / "pegword" / "services" / name) for name in ("receipts.py", "turns.py"))
    for why in re.findall(r'"(critical|newest|relevant|below the floor|over the budget|beyond k)"', source):
        assert f"| `{why}` |" in text_of(DOCS / "how-relevance-works.md")
