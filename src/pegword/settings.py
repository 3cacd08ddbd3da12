"""Settings: a config file, then the environment, then flags, to one frozen value.

The file is named by ``--config`` or ``PEGWORD_CONFIG``, else it is ``config.toml`` in the user's config folder; never one in the
working directory. Each setting can be given as ``PEGWORD_SECTION__KEY``. An unknown key of a known section is an error that names
the nearest known one; an unknown section is a warning.
"""

import difflib
import getpass
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from platformdirs import user_config_path, user_data_path

from pegword.core.address import without_password
from pegword.core.caller import GLOBAL_WRITES
from pegword.core.errors import Invalid
from pegword.core.memory import folded
from pegword.core.text import LANGUAGES

_SECOND_SEPARATOR = "__"
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_PREFIX = "PEGWORD_"
NAME_CHARS_SHOWN = 64
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
PERSONAS = "personas"  # a section with a section for each persona
PERSONA_SAYS = "whether sessions of this persona have memories, when they are made"
# Variables of ours that are no setting of a section.
_OTHER_VARIABLES = frozenset({"PEGWORD_CONFIG", "PEGWORD_DATABASE"})


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its type, its default, its bounds, and what it does in a sentence."""

    default: Any
    says: str
    least: float | None = None
    most: float | None = None
    words: tuple[str, ...] = ()


SETTINGS: Mapping[str, Mapping[str, Setting]] = {
    "server": {
        "host": Setting("127.0.0.1", "address to listen on; anything but this machine must be asked for"),
        "port": Setting(8080, "port to listen on; 0 takes a free one", 0, 65_535),
        "requests_per_minute": Setting(0, "requests that each token may send to each process in a minute; 0: any number", 0, 1_000_000),
    },
    "database": {
        "url": Setting("", "sqlite:///absolute/path.db or postgresql://user@host/name; empty: pegword.db in the user's data folder"),
    },
    "memory": {
        "relevance_k": Setting(5, "memories shown in a turn, at most", 1, 50),
        "fetch_limit": Setting(50, "accepted and without effect: every visible memory competes", 1, 500),
        "max_content": Setting(32_768, "characters of content that the memory tool accepts", 100, 65_536),
        "nudge_cooldown": Setting(300, "least seconds between two nudges of a session that speak of its memory", 0, 31_536_000),
        "nudges": Setting(True, "whether turns nudge at all"),
        "budget_chars": Setting(8_000, "characters of a turn's block, at most", 200, 1_000_000),
        "preview_chars": Setting(500, "content above this is shown as its best passage; 0 shows all", 0, 65_536),
        "index_chars": Setting(8_000, "characters of a session's index, at most", 500, 100_000),
        "critical_k": Setting(3, "memories of priority critical that always show, at most", 0, 50),
        "language": Setting("english", "language of the stemmer", words=LANGUAGES),
    },
    "policy": {
        "global_write": Setting(
            "open", "who changes memories of scope global: whoever may write (open), or who may approve (restricted)", words=GLOBAL_WRITES
        ),
    },
    "turnstone": {
        "project_word": Setting("", "word answered for kind project; empty: as it was saved", words=("", "project", "general")),
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """What is in force. Names are section_key; `origin` says of each where it came from. *personas* says of each persona that is
    named whether it has memories; of its name, case and width do not count."""

    server_host: str
    server_port: int
    server_requests_per_minute: int
    database_url: str
    memory_relevance_k: int
    memory_fetch_limit: int
    memory_max_content: int
    memory_nudge_cooldown: int
    memory_nudges: bool
    memory_budget_chars: int
    memory_preview_chars: int
    memory_index_chars: int
    memory_critical_k: int
    memory_language: str
    policy_global_write: str
    turnstone_project_word: str
    origin: Mapping[str, str]
    warnings: tuple[str, ...] = ()
    personas: Mapping[str, bool] = field(default_factory=dict)

    def has_memory(self, persona: str) -> bool:
        """Whether sessions of *persona* ("" for none) have memories; all have of which nothing else is said."""
        return self.personas.get(folded(persona.strip()), True)

    def kind_word(self, kind: str, saved_as: str = "", reads: str = "") -> str:
        """The word that stands for *kind* in an answer: two generations of clients have two words for kind project.

        First the one that the reader's key was made for (*reads*), then the one that is set, then the one that it was saved with.
        """
        return (reads or self.turnstone_project_word or saved_as or kind) if kind == "project" else kind

    def with_flags(self, **flags: Any) -> "Settings":
        """These settings with the command line's on top; a flag that is None was not given. Raises `Invalid` for one that cannot be."""
        given = {name: value for name, value in flags.items() if value is not None}
        if not str(given.get("database_url", "x")).strip():  # a variable that was not set must not mean the default place
            raise Invalid("the address of the database on the command line is empty; say one, or leave the option out", field="database")
        checked_flags = {name: checked(*_split(name), value, "the command line") for name, value in given.items()}
        return replace(self, **checked_flags, origin={**self.origin, **dict.fromkeys(given, "the command line")})


def load(config: Path | None = None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings: from *config* (must exist if named), else the file of the environment, else the user's; then the environment."""
    path, named = config_file(config, environment)
    values = {f"{section}_{key}": s.default for section, keys in SETTINGS.items() for key, s in keys.items()}
    origin = dict.fromkeys(values, "default")
    personas: dict[str, bool] = {}
    warnings: list[str] = []
    for section, table in _read(path, must=named).items():
        if not isinstance(table, dict):
            raise Invalid(f"{path}: {_no_section(section, table)}", field=section[:NAME_CHARS_SHOWN])
        if section == PERSONAS:
            personas = _personas(table, str(path))
            origin.update({f"{PERSONAS}_{name}": str(path) for name in personas})
            continue
        if section not in SETTINGS:
            warnings.append(f"{path}: unknown section [{section}] is ignored")
            continue
        for key, value in table.items():
            values[f"{section}_{key}"] = checked(section, key, value, str(path))
            origin[f"{section}_{key}"] = str(path)
    for variable, text in environment.items():
        if variable.startswith(_PREFIX) and _SECOND_SEPARATOR in variable and variable not in _OTHER_VARIABLES:
            section, _, key = variable.removeprefix(_PREFIX).lower().partition(_SECOND_SEPARATOR)
            if section == PERSONAS:
                name, _, key = key.rpartition(_SECOND_SEPARATOR)
                said = _personas({name: {key: _TRUTHS.get(text.strip().lower(), text)}}, variable)
                personas |= said
                origin.update({f"{PERSONAS}_{name}": variable for name in said})
                continue
            if section not in SETTINGS:
                warnings.append(f"{variable}: unknown section {section} is ignored")
                continue
            values[f"{section}_{key}"] = checked(section, key, _from_text(section, key, text), variable)
            origin[f"{section}_{key}"] = variable
    if environment.get("PEGWORD_DATABASE"):
        values["database_url"], origin["database_url"] = environment["PEGWORD_DATABASE"], "PEGWORD_DATABASE"
    return Settings(**values, origin=origin, warnings=tuple(warnings), personas=personas)


def config_file(config: Path | None, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """The config file, and whether somebody named it; one that nobody named need not be there."""
    named = config or (Path(environment["PEGWORD_CONFIG"]) if environment.get("PEGWORD_CONFIG") else None)
    return named or user_config_path("pegword") / "config.toml", named is not None


def checked(section: str, key: str, value: Any, where: str) -> Any:
    """*value* if it is one for this setting; else `Invalid` saying what would be."""
    keys = SETTINGS[section]
    if key not in keys:
        near = difflib.get_close_matches(key, keys, 1, 0.0)[0]
        raise Invalid(f"{where}: [{section}] has no key {key}; did you mean {near}?", field=f"{section}.{key}")
    setting = keys[key]
    name = f"{where}: {section}.{key}"
    if type(value) is not type(setting.default):
        kind = {bool: "true or false", int: "a whole number", str: "a text"}[type(setting.default)]
        raise Invalid(f"{name} must be {kind}: it is {value!r}", field=f"{section}.{key}")
    if setting.words and value not in setting.words:
        raise Invalid(f"{name} must be one of {list(setting.words)}: it is {value!r}", field=f"{section}.{key}")
    if setting.least is not None and setting.most is not None and not setting.least <= value <= setting.most:
        raise Invalid(f"{name} must be {setting.least} to {setting.most}: it is {value}", field=f"{section}.{key}")
    return value


def _personas(table: Mapping[str, Any], where: str) -> dict[str, bool]:
    """Of each persona in *table*, whether it has memories; by its name as names are compared."""
    personas: dict[str, bool] = {}
    for given, keys in table.items():
        shown = given[:NAME_CHARS_SHOWN]
        name = f"{where}: {PERSONAS}.{shown}"
        if not isinstance(keys, dict) or not given.strip():
            raise Invalid(f"{name} must be a section, a line [{PERSONAS}.NAME] with memory = true or false below it", field=PERSONAS)
        for key, value in keys.items():
            if key != "memory":
                raise Invalid(f"{where}: [{PERSONAS}.{shown}] has no key {key[:NAME_CHARS_SHOWN]}; did you mean memory?", field=PERSONAS)
            if not isinstance(value, bool):
                raise Invalid(f"{name}.memory must be true or false: it is {value!r:.64}", field=PERSONAS)
            if folded(given.strip()) in personas:
                raise Invalid(f"{name} is there twice: case and width do not tell names apart", field=PERSONAS)
            personas[folded(given.strip())] = value
    return personas


def database_of(url: str) -> Path | str:
    """The file or the PostgreSQL address that *url* names; an empty url names ``pegword.db`` in the user's data folder."""
    if not url:
        return checked_path(user_data_path("pegword") / "pegword.db")
    if url.startswith("sqlite:///"):
        path = Path("/" + url.removeprefix("sqlite://").lstrip("/"))  # four slashes are meant as three
        if len(path.parts) > 1:
            return checked_path(path)
    if url.startswith(POSTGRES_SCHEMES):
        return url
    shown = without_password(url)
    raise Invalid(f"database must be sqlite:///absolute/path.db or postgresql://user@host/name: it is {shown}", field="database")


def checked_path(path: Path) -> Path:
    """*path* if a database can have it: `Invalid` for bytes that are no UTF-8, and for NUL."""
    bad = next((c for c in str(path) if c == "\0" or 0xD800 <= ord(c) <= 0xDFFF), "")
    if bad:
        raise Invalid(f"the path of the database holds the character U+{ord(bad):04X}, which it may not", field="database")
    return path


def local_user_name() -> str:
    """The name of the account that this runs under."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid{os.getuid()}"


def _no_section(name: str, value: Any) -> str:
    """What is wrong with a name at the top of a config file that is no section."""
    name = name[:NAME_CHARS_SHOWN]
    if name in SETTINGS or name == PERSONAS:
        kind = "a list of tables" if isinstance(value, list) else f"{value!r:.64}"
        return f"{name} must be a section, a line [{name}] with its keys below it: it is {kind}"
    homes = [section for section, keys in SETTINGS.items() if name in keys]
    return f"{name} stands in no section" + (f"; write it below [{homes[0]}]" if homes else "")


def _split(name: str) -> tuple[str, str]:
    section, _, key = name.partition("_")
    return section, key


def _read(path: Path, *, must: bool) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        if must:
            raise Invalid(f"there is no config file at {path}", field="config") from None
        return {}
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}", field="config") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Invalid(f"{path} is not valid TOML: {error}", field="config") from error


def _from_text(section: str, key: str, text: str) -> Any:
    """A variable's text as the type of its setting; what cannot be one is left for `checked` to refuse."""
    setting = SETTINGS[section].get(key)
    if setting is None or isinstance(setting.default, str):
        return text
    if isinstance(setting.default, bool):
        return _TRUTHS.get(text.strip().lower(), text)
    return int(text) if text.strip().lstrip("-").isdecimal() and text.isascii() else text


assert {each.name for each in fields(Settings)} - {"origin", "warnings", "personas"} == {
    f"{section}_{key}" for section, keys in SETTINGS.items() for key in keys
}
