import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegword.core.text import COUNT_MAX, FIELD_WEIGHT, LENGTH_MAX, TERM_CHARS_MAX, Analyser

ENGLISH = Analyser()
HOSTILE = {
    "marks": "a" + "\u0300\u0323" * 32_768,
    "joints": "a-" * 32_768,
    "humps": "aB" * 32_768,
    "digits": "1a" * 32_768,
    "ideographs": "漢" * 65_536,
    "ideographs and letters": "漢a" * 32_768,
    "apostrophes": "a'" * 32_768,
    "commas": "1,000" * 13_107,
    "one word": "x" * 65_536,
    "accents": "é" * 65_536,
    "emoji": "👍" * 65_536,
    "invisible": "a\u200d" * 32_768,
    "ligatures": "\ufdfa" * 65_536,
    "quotes": '"a b" ' * 10_923,
}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The users preferred tabs", ["user", "prefer", "tab"]),
        ("user's user’s userʼs user‘s", ["user"] * 4),
        ("don't don’t dont I'd she'll", []),
        ("O’Brien", ["obrien", "brien"]),
        ("she went; they've gone", ["go", "go"]),
        ("children's mice", ["child", "mous"]),
        ("lives in Lyon", ["live", "lyon"]),
        ("colours organised behaviour centre", ["color", "organiz", "behavior", "center"]),
        ("US IT us it WHO OR AND NOT", ["us", "it", "who"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("café", ["café", "cafe"]),
        ("CAFE\u0301", ["café", "cafe"]),
        ("ＡＢＣ１２", ["abc12", "abc"]),
        ("İ ß ſ K", ["i̇", "i", "ss", "s", "k"]),
        ("user_prefers_tabs", ["user_prefers_tabs", "user", "prefer", "tab"]),
        ("getUserName", ["getusernam", "user", "name"]),
        ("XMLHttpRequest", ["xmlhttprequest", "xml", "http", "request"]),
        ("src/core/text.py", ["src/core/text.py", "src", "core", "text", "py"]),
        ("C++ C# f#", ["c++", "c", "c#", "c", "f#", "f"]),
        ("e-mail", ["e-mail", "email", "e", "mail"]),
        ("v1.2", ["v1.2", "v1", "2"]),
        ("sha256", ["sha256", "sha"]),
        ("3a7f9c21", ["3a7f9c21"]),
        ("1,234,567 and 3.14", ["1234567", "3.14", "3", "14"]),
        ("AT&T", ["at&t", "t"]),
        ("猫", ["猫"]),
        ("東京都", ["東", "京", "都", "東京", "京都"]),
        ("用户ABC设置", ["用", "户", "用户", "abc", "设", "置", "设置"]),
        ("한국", ["한", "국", "한국"]),
        ("ｶﾅ", ["カ", "ナ", "カナ"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("ไทย", ["ไ", "ท", "ย", "ไท", "ทย"]),
        ("كِتَاب كتـاب", ["كِتَاب", "كتاب", "كتاب"]),
        ("👍🏽 🇩🇪🇩🇰", ["👍", "🇩🇪", "🇩🇰"]),
        ("€5", ["€", "5"]),
        ("a\u200bb co\u00adoperate", ["ab", "cooper"]),
        ("", []),
        ("\x00 \ud800 \uffff !!!", []),
    ],
)
def test_text_becomes_terms(text: str, terms: list[str]) -> None:
    assert terms == ENGLISH.terms(text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("猫", "我家的猫很可爱"),
        ("設定", "ユーザー設定を保存"),
        ("ABC", "用户ABC设置"),
        ("cafe", "the café"),
        ("strasse", "Hauptstraße Straße"),
        ("كتاب", "كِتَاب"),
        ("tabs", "user_prefers_tabs"),
        ("text.py", "see text.py."),
        ("reindex", "re-index"),
        ("1000", "1,000 euros"),
        ("организация", "ОРГАНИЗАЦИЯ"),
        ("елка", "ёлка"),
    ],
)
def test_a_query_meets_the_text(query: str, text: str) -> None:
    assert set(ENGLISH.distinct(query)) & set(ENGLISH.terms(text))


@pytest.mark.parametrize(("one", "other"), [("3a7f9c21", "3a7f9c22"), ("deadbeef1", "deadbeef2"), ("猫", "犬"), ("🇩🇪", "🇩🇰"), ("us", "US")])
def test_what_only_looks_alike_does_not_meet(one: str, other: str) -> None:
    assert not set(ENGLISH.terms(one)) & set(ENGLISH.terms(other))


@given(st.text())
@example("æ")
@example("'s")
@example("a,000")
def test_any_string_is_a_text_and_a_query(text: str) -> None:
    first = ENGLISH.terms(text)

    assert first == ENGLISH.terms(text) == Analyser().terms(text)
    assert all(0 < len(term) <= TERM_CHARS_MAX for term in first)
    assert set(ENGLISH.query(text).terms) == set(first)
    assert set(ENGLISH.document(text, [text]).counts) == set(first)
    ENGLISH.holds_phrase(text, tuple(ENGLISH.forms(text)))


@given(st.text())
def test_composed_and_decomposed_letters_are_the_same(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))

    assert ENGLISH.terms(composed) == ENGLISH.terms(decomposed)


@pytest.mark.parametrize("language", ["german", "russian", "arabic", "french"])
def test_other_languages_are_stemmed_by_their_own_rules(language: str) -> None:
    analyser = Analyser(language)

    assert analyser.terms("the") != []
    assert analyser.terms("Häuser Книги книгами كتب l’été") == analyser.terms("Häuser Книги книгами كتب l’été")


def test_field_words_weigh_more_and_counts_are_capped() -> None:
    document = ENGLISH.document("tea " * 10_000, ["tea time", "green"])

    assert document.counts == {"tea": COUNT_MAX, "time": FIELD_WEIGHT, "green": FIELD_WEIGHT}
    assert document.length == 10_003
    assert ENGLISH.document("tea " * 70_000, []).length == LENGTH_MAX


@pytest.mark.parametrize(
    ("text", "phrase", "held"),
    [
        ("We must pay the rent on Monday.", "pay the rent", True),
        ("We paid the rents", "pay the rent", True),
        ("the rent we pay", "pay the rent", False),
        ("user_prefers_tabs", "prefers tabs", True),
        ("repay the rent", "pay the rent", False),
        ("東京都に住む", "京都", True),
        ("Café Noir", "cafe noir", True),
    ],
)
def test_phrases_stand_together(text: str, phrase: str, held: bool) -> None:
    assert held is ENGLISH.holds_phrase(text, tuple(ENGLISH.forms(phrase)))


def test_phrases_are_read_from_quotes_of_any_kind() -> None:
    query = ENGLISH.query('rent "pay the rent" “on monday” "one" -x OR y*')

    assert [phrase.forms for phrase in query.phrases] == [("pay", "the", "rent"), ("on", "monday")]
    assert [phrase.terms for phrase in query.phrases] == [("pay", "rent"), ("monday",)]
    assert tuple(term for term in query.terms if term != "one") == ("rent", "pay", "monday", "x", "y")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_takes_linear_time(name: str) -> None:
    """64k characters, in a time that quadratic work would exceed many times: in no more than four times eight times what an eighth of them
    takes, and some seconds for what the machine does beside it."""
    text = HOSTILE[name]

    assert took(text) < 5 + 4 * 8 * took(text[: len(text) // 8])


def took(text: str) -> float:
    """The seconds of this thread's work that it takes to read *text* in every way."""
    start = time.thread_time()
    Analyser().terms(text)
    Analyser().query(text)
    list(Analyser().forms(text))
    return time.thread_time() - start


@given(st.text(st.sampled_from("aAb 1,.-_'é漢\n\u0301👍\""), max_size=60), st.lists(st.text(max_size=8), max_size=2))
def test_each_word_is_looked_at_once_and_counts_as_often_as_it_stands(text: str, fields: list[str]) -> None:
    """What is known of a whole text is what its terms one by one would tell, in their order."""
    terms = ENGLISH.terms(text)
    document = ENGLISH.document(text, fields)
    counts: dict[str, int] = {}
    for times, words in ((1, terms), *((FIELD_WEIGHT, ENGLISH.terms(field)) for field in fields)):
        for term in words:
            counts[term] = min(COUNT_MAX, counts.get(term, 0) + times)

    assert list(dict.fromkeys(terms)) == ENGLISH.distinct(text)
    assert (list(counts.items()), len(terms) + sum(len(ENGLISH.terms(field)) for field in fields)) == (
        list(document.counts.items()), document.length,
    )  # fmt: skip
