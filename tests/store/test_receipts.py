"""What a turn considered, as rows."""

import pytest

from pegword.services.bundle import Services
from pegword.store import receipt_rows
from tests.conftest import Statements

LINES = [(f"m{number:03d}", number + 1, "{}") for number in range(150)]


@pytest.mark.parametrize("count", [0, 1, receipt_rows.ROWS_AT_ONCE - 1, receipt_rows.ROWS_AT_ONCE, 150])
def test_a_receipt_is_kept_whole_however_many_lines_it_has(services: Services, count: int) -> None:
    """The head, and each line once."""
    services.engine.write(lambda tx: receipt_rows.add(tx, "r1", "u1", 7, '{"k": 1}', LINES[:count]))
    with services.engine.read() as tx:
        head, *lines = receipt_rows.get(tx, "r1")

    assert ("", "u1", 7, 0, '{"k": 1}') == head
    assert [(memory_id, "u1", 7, version, body) for memory_id, version, body in LINES[:count]] == sorted(lines)


def test_a_receipt_takes_one_statement(services: Services, statements: Statements) -> None:
    """As many lines as a turn considers: row by row it would wait for the interpreter as often."""
    statements.seen.clear()
    services.engine.write(lambda tx: receipt_rows.add(tx, "r1", "u1", 7, "{}", LINES[:30]))

    assert 1 == sum("INTO receipts" in sql for sql in statements.seen)
    assert 31 == next(sql for sql in statements.seen if "INTO receipts" in sql).count("(?")
