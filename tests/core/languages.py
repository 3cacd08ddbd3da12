"""The languages that come with the program, as the core takes them."""

from pegword.assembly import languages

LANGUAGES = tuple(languages())
