"""How a user's words show that they correct or are content, and how a tool's result shows that it failed or was denied."""

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegword.core.errors import Invalid
from pegword.core.signs import completes, corrects, denies, fails, language, read
from tests.core.languages import LANGUAGES

CORRECTIONS = (
    # English: strong
    "no, use tabs",
    "No. Use the other one.",
    "No! Not that file",
    "no - use tabs",
    "don't do that",
    "I don't want that",
    "dont do it",
    "stop doing that",
    "Stop",
    "wrong file",
    "That's wrong",
    "I said tabs",
    "I meant the other branch",
    "please don't push",
    "actually, use main",
    "Actually use main",
    "instead use make",
    "not like that",
    "that's not right",
    "well, that's not it",
    "never use tabs, always use spaces",
    "- no, the second one",
    "**No**, the second one",
    "“No, the second one.”",
    # English: weak
    "no that one",
    "no I want the other",
    "no the other",
    "no not that",
    "no do it so",
    "no it's fine as it was",
    "no you should ask",
    "no but wait",
    # German
    "Nein, nimm Leerzeichen",
    "nein das andere",
    "Falsch, es ist der zweite",
    "Stopp!",
    "so nicht",
    "Nicht so, sondern mit Tabs",
    "Ich meinte den anderen Zweig",
    "Nie so, immer mit Leerzeichen",
    "Verwende nicht den alten Server",
    "das ist nicht, was ich wollte",
    "eigentlich brauche ich Port 5433",
    # French
    "Non, utilise des espaces",
    "non pas celui-là",
    "Arrête de faire ça",
    "Ce n’est pas ça",
    "pas comme ça",
    "j'ai dit main",
    "Je voulais dire l'autre",
    "jamais de tabulations, toujours des espaces",
    "C'EST FAUX",
    "En fait, prends l'autre",
    "n'utilise pas cette branche",
    # Spanish
    "No, usa espacios",
    "no es eso",
    "no lo hagas",
    "eso no",
    "¡No! El otro",
    "quería decir el otro",
    "Está mal, es el segundo",
    "No uses esa rama",
    "nunca tabulaciones, siempre espacios",
    "En realidad quiero el otro",
)
NO_CORRECTIONS = (
    "no problem",
    "no worries",
    "no rush",
    "no one knows",
    "no thanks",
    "no doubt",
    "no idea",
    "notice the port",
    "nobody knows",
    "normal again",
    "note the port",
    "nonstop",
    "",
    " ",
    "no",
    "nowhere",
    "no-one is here",
    "stopwatch",
    "wrongly named",
    "actuality",
    "instead-of",
    "I don't know",
    "don't worry about it",
    "why not like that?",
    "Can you notice that nobody stopped?",
    "always good, never bad",
    "Ich bin nicht so sicher",
    "Kein Problem",
    "nicht so schlimm",
    "Neinstimmen",
    "warum nicht so?",
    "Ce n'est pas grave",
    "pourquoi pas comme ça ?",
    "nonchalant",
    "No pasa nada",
    "no lo sé",
    "no es nada",
    "No sé cómo",
    "norte y sur",
    "Which port has the postgres replica in staging?",
    "猫が好き",
    "👍",
)
COMPLETIONS = (
    "that's all",
    "LGTM",
    "lgtm, ship it",
    "thanks",
    "Thanks!",
    "thank you",
    "perfect",
    "Perfect.",
    "great job",
    "done",
    "looks good",
    "looks good to me, thanks",
    "that works",
    "well, that's all I wanted to know about the port of the replica in staging and in production today.",
    "Danke!",
    "vielen Dank",
    "Das wars",
    "sieht gut aus",
    "Passt",
    "perfekt",
    "Merci",
    "merci beaucoup",
    "c’est tout",
    "ça marche",
    "parfait",
    "gracias",
    "¡Gracias!",
    "perfecto",
    "eso es todo",
    "muy bien",
)
NO_COMPLETIONS = (
    "thanks for the help",
    "thanks but no",
    "thanks, but that fails",
    "perfect, can you also do x",
    "perfect now",
    "perfect. please push it",
    "looks good?",
    "done, next step",
    "that works however",
    "thanks. one more thing",
    "thanks " + "very much " * 10,
    "perfection",
    "doner",
    "",
    "Danke für die Hilfe",
    "Danke, kannst du auch den Rest machen",
    "Danke, aber der Port fehlt",
    "merci pour ça",
    "merci, mais il manque le port",
    "super, can you run it",
    "gracias por todo",
    "gracias, pero falta el puerto",
    "perfecto, ahora el otro",
    "Which port?",
)
DENIED = (
    "User denied the tool call.",
    "Denied by user",
    "Tool call rejected by the user",
    "The user doesn't want to proceed with this tool use.",
    "The user doesn’t want this",
    "Tool execution was not approved.",
    "vom Benutzer abgelehnt",
    "Refusé par l’utilisateur",
    "rechazado por el usuario",
)
FAILED = (
    "Error: no such file",
    "error: no such file",
    "Traceback (most recent call last):\n  File",
    "fatal: not a git repository",
    '{"error": "no such file"}',
    '{ "error" : {"code": 5} }',
    "Internal error preparing memory",
    "Failed to open",
    "Fehler: keine Datei",
    "Erreur : rien",
    "Error al abrir",
    "command not found",
)
NOT_FAILED = (
    "42 lines",
    "",
    '{"error": null, "rows": 3}',
    '{"error": false}',
    '{"error": ""}',
    "no errors",
    "errors: 0",
    "The error: it was found",
    "errorless",
    '{"ok": true}',
    "user denial rates fell",
)


@pytest.mark.parametrize("text", CORRECTIONS)
def test_a_correction_is_seen(text: str) -> None:
    assert corrects(read(text), LANGUAGES)


@pytest.mark.parametrize("text", NO_CORRECTIONS)
def test_what_only_looks_like_one_is_no_correction(text: str) -> None:
    assert not corrects(read(text), LANGUAGES)


@pytest.mark.parametrize("text", COMPLETIONS)
def test_contentment_is_seen(text: str) -> None:
    assert completes(read(text), LANGUAGES)


@pytest.mark.parametrize("text", NO_COMPLETIONS)
def test_who_wants_more_is_not_content_yet(text: str) -> None:
    """Thanks for something, a question, a wish in any language, and thanks at the head of a long text."""
    assert not completes(read(text), LANGUAGES)


@pytest.mark.parametrize("text", DENIED)
def test_a_denial_is_seen_in_a_tools_result(text: str) -> None:
    assert denies(read(text), LANGUAGES)


def test_words_of_denial_in_what_a_tool_found_are_none() -> None:
    """A long result is content, whatever words stand in it."""
    assert not denies(read("denied by user " + "x" * 400), LANGUAGES)


@pytest.mark.parametrize("text", FAILED)
def test_a_failure_is_seen_in_a_tools_result(text: str) -> None:
    assert fails(read(text), LANGUAGES)


@pytest.mark.parametrize("text", NOT_FAILED)
def test_what_only_speaks_of_errors_is_no_failure(text: str) -> None:
    assert not fails(read(text), LANGUAGES)


@pytest.mark.parametrize("apostrophe", "'’‘ʼ‛′`´＇")
def test_every_apostrophe_counts(apostrophe: str) -> None:
    for text in ("don't do that", "that's not it", "je t'ai dit main", "c'est faux"):
        assert corrects(read(text.replace("'", apostrophe)), LANGUAGES)
    assert completes(read("that's all".replace("'", apostrophe)), LANGUAGES)


@given(
    st.sampled_from(CORRECTIONS),
    st.sampled_from([str.upper, str.title, lambda t: unicodedata.normalize("NFD", t), lambda t: f"\u200b{t}\u202e"]),
)
def test_case_composition_and_invisible_characters_make_no_difference(text: str, change: "type[str]") -> None:
    assert corrects(read(change(text)), LANGUAGES)  # type: ignore[call-arg]


@given(st.sampled_from(CORRECTIONS), st.sampled_from("abcxyzäñ7"))
def test_nothing_is_found_inside_a_word(text: str, letter: str) -> None:
    """Glued together, what a phrase is made of is no phrase."""
    glued = "".join(letter if c.isspace() else c for c in text if c.isalnum() or c.isspace())

    assert not corrects(read(f"{letter}{glued}{letter}"), LANGUAGES) or len(glued.split()) > 1


def test_languages_are_apart() -> None:
    """A language sees its own signs only."""
    german = [signs for signs in LANGUAGES if signs.name == "german"]

    assert (True, False) == (corrects(read("Falsch, der zweite"), german), corrects(read("not like that"), german))


def test_of_a_long_text_only_its_ends_are_read() -> None:
    filler = "word " * 1_000

    assert corrects(read(f"no, not so: {filler}"), LANGUAGES)
    assert completes(read(f"{filler} that's all"), LANGUAGES)
    assert not corrects(read(f"{filler} not like that {filler}"), LANGUAGES)
    assert not corrects(read("x" * 995 + " not like " + "y" * 2_000 + " that"), LANGUAGES)


HOSTILE = [
    "no " * 100_000, "never " * 100_000, "'" * 1_000_000, "-" * 1_000_000, "a-" * 500_000, "a" + "\u0301" * 200_000, "\u202e" * 300_000,
    "don" + "\u200b" * 100_000 + "'t", "({[" * 300_000, "\u1112\u1161\u11ab" * 100_000, "ﷺ" * 100_000, "\0" * 100_000, "🏳️‍🌈" * 50_000,
    "that's not " * 50_000, "\ud800" * 1_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_takes_long(text: str) -> None:
    """The effort is bounded, whatever is sent: a thousandth of this, and far below what a pattern that looks back would take."""
    began = time.thread_time()
    said = read(text)
    for sign in (corrects, completes, denies, fails):
        sign(said, LANGUAGES)

    assert time.thread_time() - began < 5
    assert len(said.tokens) < 1_500 * 20


@given(st.text(max_size=300))
@example("\ud800")
@example("İ" * 50)
def test_every_text_is_answered(text: str) -> None:
    said = read(text)

    assert {True, False} >= {sign(said, LANGUAGES) for sign in (corrects, completes, denies, fails)}


@pytest.mark.parametrize("signs", LANGUAGES, ids=lambda signs: signs.name)
def test_every_language_has_signs_of_each_section(signs: "object") -> None:
    sections = {section for section, _ in signs.phrases}  # type: ignore[attr-defined]

    assert {"correction", "completion", "denial", "tool_error"} == sections


def test_these_languages_come_with_the_program() -> None:
    assert {"english", "french", "german", "spanish"} <= {signs.name for signs in LANGUAGES}


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        ({"weather": {}}, "there is no section weather"),
        ({"correction": []}, "there is no section correction"),
        ({"correction": {"begin": ["x"]}}, r"\[correction\] has no key begin"),
        ({"correction": {"begins": "x"}}, "correction.begins must be a list of phrases"),
        ({"correction": {"begins": []}}, "correction.begins must be a list of phrases"),
        ({"correction": {"begins": [1]}}, "correction.begins must be a list of phrases"),
        ({"correction": {"begins": [" "]}}, "none of them blank"),
        ({"correction": {"in_order": [["a"]]}}, "must hold 2 phrases"),
        ({"correction": {"in_order": ["a"]}}, "must be a list of pairs"),
        ({"correction": {"begins_then": [{"first": ["a"]}]}}, "correction.begins_then.then must be"),
        ({"correction": {"begins_then": ["a"]}}, "must be a list of tables"),
    ],
)
def test_a_data_file_that_is_wrong_is_refused_with_its_place(table: "dict[str, object]", complaint: str) -> None:
    with pytest.raises(Invalid, match=f"signs of martian: .*{complaint}"):
        language("martian", table)


def test_a_language_without_blanks_can_have_signs() -> None:
    """Chinese and Japanese are read sign by sign."""
    chinese = language("chinese", {"correction": {"begins": ["不对"], "holds": ["不是这样"]}, "completion": {"short_begins": ["谢谢"]}})

    assert corrects(read("不对，用空格"), [chinese])
    assert corrects(read("我觉得不是这样的"), [chinese])
    assert completes(read("谢谢！"), [chinese])
    assert not corrects(read("不会"), [chinese])
