"""A corpus of API documentation, made from the docstrings of the standard library: names, signatures, short prose.

Of each function or class the first sentence of the docstring is the question, and the rest of it, under the qualified
name, is the memory. So questions share few words with what answers them, and identifiers matter.
"""

import importlib
import inspect
import re
from types import ModuleType

from bench.locomo import Corpus, Item, Question

# Pure Python for the most part, so that the text varies little between platforms.
_MODULES = """
    argparse ast asyncio base64 bisect calendar cmd codecs collections configparser contextlib copy csv ctypes
    dataclasses datetime decimal difflib dis doctest email.message email.header enum fileinput fnmatch fractions
    ftplib functools getopt getpass gettext glob graphlib gzip hashlib heapq html http.client http.cookies
    http.server imaplib inspect io ipaddress itertools json keyword linecache locale logging logging.handlers lzma
    mailbox math mimetypes multiprocessing numbers operator optparse os pathlib pdb pickle pickletools platform
    plistlib poplib pprint profile pstats queue quopri random re reprlib sched secrets selectors shelve shlex
    shutil signal smtplib socket socketserver sqlite3 ssl stat statistics string struct subprocess symtable
    sysconfig tarfile tempfile textwrap threading timeit tokenize trace traceback tracemalloc turtle types typing
    unittest unittest.mock urllib.parse urllib.request uuid warnings wave weakref webbrowser xml.dom.minidom
    xml.etree.ElementTree xmlrpc.client zipfile zipimport
""".split()
_SENTENCE = re.compile(r"(.+?[.!?])(?:\s+|$)(.*)", re.DOTALL)
_ADDRESS = re.compile(" at 0x[0-9a-f]+")  # where a default value lies in memory: another on each run
_CHARS_MIN = 60
_PARTS = 4


def api_corpora() -> list[Corpus]:
    """The documentation in four scopes, modules dealt out in turn; a module is one sitting."""
    corpora = []
    for part in range(_PARTS):
        items: list[Item] = []
        questions: list[Question] = []
        for name in _MODULES[part::_PARTS]:
            _read(importlib.import_module(name), items, questions)
        corpora.append(Corpus(f"part {part + 1}", tuple(items), tuple(questions)))
    return corpora


def _read(module: ModuleType, items: list[Item], questions: list[Question]) -> None:
    for name, member in sorted(vars(module).items()):
        if name.startswith("_") or getattr(member, "__module__", "") != module.__name__:
            continue
        _take(f"{module.__name__}.{name}", member, items, questions)
        if inspect.isclass(member):
            for inner, method in sorted(vars(member).items()):
                if not inner.startswith("_") and callable(method):
                    _take(f"{module.__name__}.{name}.{inner}", method, items, questions)


def _take(name: str, member: object, items: list[Item], questions: list[Question]) -> None:
    document = vars(member).get("__doc__") if inspect.isclass(member) else getattr(member, "__doc__", None)
    found = _SENTENCE.match(" ".join(str(document or "").split()))
    if not found or len(found[2]) < _CHARS_MIN:
        return
    try:
        signature = str(inspect.signature(member))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        signature = ""
    text = f"{name}{_ADDRESS.sub('', signature)}\n{found[2]}"
    items.append(Item(text, name.partition(".")[0], frozenset([name]), name))
    questions.append(Question(found[1], frozenset([name])))
