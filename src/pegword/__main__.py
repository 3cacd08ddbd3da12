"""``python -m pegword``: the command line."""

from pegword.cli import main

main()
