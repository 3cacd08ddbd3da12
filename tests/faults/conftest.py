"""What the tests of faults stand on."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.harness import quick_folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for stores on a disk that is pretended."""
    made = quick_folder(tmp_path)
    yield made
    shutil.rmtree(made, ignore_errors=True)
