"""The rules of the house that a program can check: who imports whom, how long things are, what no file may hold."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pegword"
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

# Who may import what. A room is a folder or a file beside the folders; "std" is the standard library.
# Where the right side names a file, only that file of the room may.
ROOMS: dict[str, set[str]] = {
    "core": {"std", "core"},
    "store": {"std", "core", "store", "numpy"},
    "services": {"std", "core", "store", "services", "numpy"},
    "tool": {"std", "core", "services", "tool"},
    "strict_json": {"std", "core"},
    "lines": {"std", "core", "strict_json"},
    "settings": {"std", "core", "platformdirs"},
    "live_settings": {"std", "core", "settings"},
    "http": {"std", "core", "services", "tool", "settings", "strict_json", "lines", "http", "__init__"}
    | {"starlette", "msgspec", "uvicorn", "httptools"},
    "cli": {"std", "core", "services", "tool", "settings", "live_settings", "lines", "assembly", "http", "cli", "__init__"}
    | {"typer", "rich", "click"},
    "assembly": {"std", "core", "services", "settings", "store"},
    "arguments": {"std", "core"},
    "session": {"std", "core", "services", "tool", "arguments"},
    "embedded": {"std", "core", "services", "tool", "settings", "live_settings", "assembly", "arguments", "session"},
    "testing": {"std", "core", "services", "settings", "assembly", "embedded"},
    "__init__": {"std", "core", "services", "tool", "embedded", "session"},
    "__main__": {"cli"},
}  # fmt: skip
ONLY_IN: dict[str, set[str]] = {
    "numpy": {"core/ranking.py", "core/floor.py", "store", "services/finding.py"},
    "Stemmer": {"core/text.py"},
    "apsw": {"store/sqlite.py", "store/sqlite_file.py"},
    "psycopg": {"store/postgres.py"},
    "psycopg_pool": {"store/postgres.py"},
    "uvicorn": {"http"},
    "msgspec": {"http", "services/receipts.py"},
}
FACES = {
    "http/turnstone.py",
    "http/native.py",
    "http/tooling.py",
    "http/sessions.py",
    "http/events.py",
    "http/sharing.py",
    "http/transfer.py",
    "http/health.py",
}
ENTRY_POINTS = {"pegword", "pegword.__main__", "pegword.testing"}

MODULES = sorted(SOURCE.rglob("*.py"))
TESTS_AND_BENCH = sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")])


def place(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room(name: str) -> str:
    return name.partition("/")[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Every module that *path* imports, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are written out, never relative"
            assert node.module is not None
            for alias in node.names:
                below = SOURCE.parent / Path(*node.module.split("."), alias.name)
                is_module = below.with_suffix(".py").exists() or (below / "__init__.py").exists()
                yield (f"{node.module}.{alias.name}" if is_module else node.module), node.lineno


def target(module: str) -> str:
    """The room, package or "std" that an import leads to."""
    parts = module.split(".")
    if parts[0] == "pegword":
        return parts[1] if len(parts) > 1 else "__init__"
    return "std" if parts[0] in sys.stdlib_module_names else parts[0]


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_a_room_imports_only_what_its_table_allows(path: Path) -> None:
    """Arrows between rooms point one way; drivers and number libraries stay where they belong."""
    mine = place(path)
    complaints = []
    for module, line in imports(path):
        to = target(module)
        allowed = to in ROOMS[room(mine)] or to in ONLY_IN
        where = ONLY_IN.get(to)
        if where is not None and not any(mine == w or mine.startswith(f"{w}/") for w in where):
            allowed = False
        if not allowed:
            complaints.append(f"{mine}:{line} imports {module}")

    assert [] == complaints


@pytest.mark.parametrize("face", sorted(FACES))
def test_no_face_imports_another_face(face: str) -> None:
    others = {f"pegword.{name.removesuffix('.py').replace('/', '.')}" for name in FACES - {face}}

    assert set() == {module for module, _ in imports(SOURCE / face)} & others


@pytest.mark.parametrize("path", [*MODULES, *TESTS_AND_BENCH], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_and_functions_are_short(path: Path) -> None:
    """What wants to grow past this lacks a boundary."""
    text = path.read_text(encoding="utf-8")
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]

    assert [] == long
    if path.is_relative_to(SOURCE):
        assert text.count("\n") <= FILE_LINES_MAX


def test_no_module_is_an_orphan() -> None:
    """Every module is imported by another one or is a way in."""
    imported = {module for path in MODULES for module, _ in imports(path)}
    named = {"pegword." + place(path).removesuffix(".py").replace("/", ".") for path in MODULES if path.name != "__init__.py"}

    assert set() == {name for name in named if name not in imported} - ENTRY_POINTS


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_public_names_are_sorted_and_documented(path: Path) -> None:
    """`__all__` is sorted; what does not begin with _ has a docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            names = ast.literal_eval(node.value)
            assert sorted(names) == list(names)
    public = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]

    if place(path) not in {f"{r}/__init__.py" for r in ("core", "store", "services", "http")}:
        assert ast.get_docstring(tree)
    assert [] == [node.name for node in public if not ast.get_docstring(node)]


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_every_text_file_is_opened_with_an_encoding(path: Path) -> None:
    """What a machine's locale is must not change what is read."""
    complaints = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        binary = any(isinstance(a, ast.Constant) and isinstance(a.value, str) and "b" in a.value for a in node.args)
        module_call = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "os"
        given = binary or module_call or any(k.arg == "encoding" for k in node.keywords)
        if name in {"open", "read_text", "write_text"} and not given:
            complaints.append(f"{place(path)}:{node.lineno}: {name} without an encoding")

    assert [] == complaints


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_no_module_keeps_state(path: Path) -> None:
    """Everything is built in the composition root and handed down: no global statement, no module-level empty container."""
    tree = ast.parse(path.read_text(encoding="utf-8"))

    assert [] == [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Global)]
    empty = [
        node.lineno
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and (
            (isinstance(node.value, ast.Dict) and not node.value.keys)
            or (isinstance(node.value, ast.List | ast.Set) and not node.value.elts)
        )
    ]
    assert [] == empty


def test_sql_is_only_in_the_store() -> None:
    pattern = re.compile(r"\b(SELECT .+ FROM|INSERT INTO|DELETE FROM|UPDATE \w+ SET)\b")
    rooms = {room(place(path)) for path in MODULES if pattern.search(path.read_text(encoding="utf-8"))}

    assert {"store"} == rooms


def test_no_tracked_file_names_a_registry_or_a_path_of_one_machine() -> None:
    """What is committed works on every machine and says nothing of the one it was written on."""
    hosts = re.compile(r"https?://\S+/(?:simple|packages)/|https?://\S+\.(?:whl|tgz|tar\.gz|deb)\b|\"resolved\":|--index-url|--find-links")
    paths = re.compile(r"(?<![\w.])/(?:root|home/\w+)/\w")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    complaints = []
    for name in filter(None, listed.stdout.decode().split("\0")):
        path = ROOT / name
        if name == "tests/test_tidy.py" or not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if hosts.search(line) or paths.search(line):
                complaints.append(f"{name}:{number}")

    assert [] == complaints
