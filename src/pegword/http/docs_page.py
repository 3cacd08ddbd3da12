"""A page for people made from the OpenAPI document: plain HTML, no script, nothing from anywhere else."""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
h2 { margin-top: 2.5rem; border-top: 1px solid #ccc; padding-top: 1rem; font-size: 1.1rem; overflow-wrap: anywhere; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; color: #05572f; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #eee; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #161616; } a { color: #8ab4f8; } .method { color: #7fd6a4; } th, td { border-color: #333; }
}
"""
_HASH = b64encode(sha256(_STYLE.encode()).digest()).decode()
HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    (
        "Content-Security-Policy",
        f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("Referrer-Policy", "no-referrer"),
)


def page(document: dict[str, Any]) -> bytes:
    """The page for an OpenAPI *document*."""
    info = document["info"]
    operations = [
        _operation(method, path, operation) for path, methods in document["paths"].items() for method, operation in methods.items()
    ]
    schemas = [_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    description = "".join(f"<p>{escape(part)}</p>" for part in info["description"].split("\n\n"))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])} API</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>{description}"
        f'<p>For programs: <a href="/openapi.json">openapi.json</a></p>{"".join(operations)}'
        f"<h2>Bodies</h2>{''.join(schemas)}</body></html>"
    ).encode()


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    rows = [(f"{p['name']} ({p['in']})", _type(p["schema"]), p.get("description", "")) for p in operation.get("parameters", [])]
    if "requestBody" in operation:
        rows.append(("body", _content(operation["requestBody"]), ""))
    rows += [(status, _content(answer), answer["description"]) for status, answer in operation["responses"].items()]
    return (
        f'<h2 id="{escape(operation["operationId"])}"><span class="method">{escape(method.upper())}</span> <code>{escape(path)}</code></h2>'
        f"<p>{escape(operation['summary'])}. {escape(operation.get('description', 'Needs no credential.'))}</p>{_table(rows)}"
    )


def _schema(name: str, schema: dict[str, Any]) -> str:
    required = set(schema.get("required", ()))
    rows = [
        (f"{field}{'' if field in required else ' (optional)'}", _type(part), part.get("description", ""))
        for field, part in schema.get("properties", {}).items()
    ]
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{escape(schema.get("description", ""))}</p>{_table(rows)}'


def _table(rows: list[tuple[str, str, str]]) -> str:
    """Rows of a name, a type that is HTML already, and a remark."""
    lines = "".join(f"<tr><td><code>{escape(name)}</code></td><td>{kind}</td><td>{escape(says)}</td></tr>" for name, kind, says in rows)
    return f"<table>{lines}</table>"


def _content(part: dict[str, Any]) -> str:
    ((media, content),) = part["content"].items()
    return _type(content["schema"]) + ("" if media == "application/json" else f" a line, as {escape(media)}")


def _type(schema: dict[str, Any]) -> str:
    """A schema in a few words, as HTML."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(word))}</code>" for word in schema["enum"] if word != "")
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to"), ("maxLength", "at most")) if key in schema]
    kind = escape(str(schema.get("type", "any")))
    of = f" of {_type(schema['items'])}" if schema.get("items") else ""
    return f"{kind}{of} {escape(', '.join(bounds))}".strip()
