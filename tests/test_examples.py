"""The example agents: that their page shows what they do is held by tests/test_docs.py; here, that it is what they are there to show."""

import re

from tests.docrunner import ROOT, blocks, canonical

PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def transcripts() -> list[str]:
    """What each agent printed, ids and times apart."""
    consoles = [block.text for block in blocks(PAGE) if block.info == "console"]
    return [canonical(text[text.index("== Monday") :]) for text in consoles]


def test_both_agents_hold_the_same_conversation() -> None:
    """In one process and over HTTP: the same turns, nudges and results, to the letter."""
    in_process, over_http = transcripts()

    assert in_process == over_http


def test_a_later_session_knows_what_an_earlier_one_learned() -> None:
    """By a turn, a correction that a nudge made it save, and a tool that does not save again what was shown."""
    monday, wednesday, later = transcripts()[0].split("\n== ")

    assert "(nudge: correction)\ntool:" in monday
    assert "-> Updated memory 'project_deploy_day'" in monday
    assert "agent: We deploy on Thursdays." in wednesday
    assert "agent: We deploy on Thursdays. Vera reviews it." in later
    assert re.search(r'"name": "what_i_know".*\n    -> Not saved: this is text that memory itself has shown', later)


def test_the_agents_need_nothing_but_pegword() -> None:
    for path in (ROOT / "examples").glob("*.py"):
        imported = re.findall(r"^(?:import|from) (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)

        assert set(imported) <= {"json", "os", "re", "sys", "tempfile", "pathlib", "textwrap", "collections", "typing", "urllib", "pegword",
                                 "scripted", "agent_loop"}, path.name  # fmt: skip
