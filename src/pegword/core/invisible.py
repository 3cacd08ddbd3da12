"""Characters that no reader sees, but that a model, a terminal or a comparison obeys."""

import re

# What Unicode calls default-ignorable, bidirectional controls, zero-width and tag characters, notation controls, and letters that
# are drawn as nothing.
RANGES = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F),
    (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB), (0x13430, 0x13455), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
CHARACTERS = "".join(f"{chr(first)}-{chr(last)}" for first, last in RANGES)
PATTERN = re.compile(f"[{CHARACTERS}]")


def is_invisible(character: str) -> bool:
    """Whether *character* is one that no reader sees."""
    return PATTERN.match(character) is not None
