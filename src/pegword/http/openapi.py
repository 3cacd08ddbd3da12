"""The OpenAPI 3.1 document, made from the routes: there is no second place that could say something else."""

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec

from pegword.http.conditions import PATTERN
from pegword.http.failures import Error
from pegword.http.routing import Route
from pegword.lines import MEDIA_TYPE
from pegword.services.once import KEPT_HOURS, KEY_CHARS_MAX

_REF = "#/components/schemas/{name}"
_IF_MATCH = {"type": "string", "pattern": PATTERN}
_IF_NONE_MATCH = {"type": "string", "enum": ["*"]}
_DESCRIPTION = """Memory for LLM agents: short keyed notes, of which the few that matter stand in the next turn.

Every path under /v1 takes `Authorization: Bearer TOKEN`. Every failure answers `{"error", "code", "field"?}`."""


def document(routes: Iterable[Route], version: str) -> dict[str, Any]:
    """The document for *routes* of a server of this *version*, ready to be encoded as JSON."""
    routes = [route for route in routes if route.answer is not None]
    structs = dict.fromkeys(kind for route in routes for kind in (route.answer, route.body, route.lines) if kind is not None)
    _, schemas = msgspec.json.schema_components([*structs, Error], ref_template=_REF)
    for body in dict.fromkeys(route.body for route in routes if route.body is not None):
        _allow_null(schemas[body.__name__])
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(re.sub(r":path\}", "}", route.path), {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Pegword", "version": version, "description": _DESCRIPTION, "license": {"name": "MIT", "identifier": "MIT"}},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def failures_of(route: Route) -> list[int]:
    """The statuses of failure that *route* can answer, lowest first."""
    statuses = {400, 403, 408, 414, 431, 500, 503}
    if route.right:
        statuses |= {401, 409, 429}
    if route.right == "write" or not route.quick:
        statuses |= {507}
    if route.parameters:
        statuses |= {404}
    if route.body or route.lines:
        statuses |= {404, 413, 415}
    if route.conditional:
        statuses |= {412}
    return sorted(statuses)


def _allow_null(schema: dict[str, Any]) -> None:
    """Say of every optional field of a body that it may be null, which means absent."""
    for name, part in schema["properties"].items():
        kinds = part.get("anyOf", [part])
        if name not in schema.get("required", ()) and {"type": "null"} not in kinds:
            about = {key: part.pop(key) for key in ("description", "default") if key in part}
            schema["properties"][name] = {"anyOf": [*kinds, {"type": "null"}], **about}


def _operation(route: Route) -> dict[str, Any]:
    assert route.answer is not None
    operation: dict[str, Any] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "tags": [route.handler.__module__.rpartition(".")[2]],
        "security": [{"token": []}] if route.right else [],
        "responses": {
            **{str(status): _response(status, route.answer, route.media) for status in route.statuses},
            **{str(status): _response(status, Error) for status in failures_of(route)},
        },
    }
    if route.right:
        operation["description"] = f"Needs the right to {route.right}."
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in route.parameters]
    parameters += _query_parameters(route.query) if route.query else []
    if route.conditional:
        says = "the versions of which the memory must be at one, as their ETags; *: it must be there"
        parameters.append({"name": "If-Match", "in": "header", "required": False, "description": says, "schema": _IF_MATCH})
        says = "*: there must be no such memory yet"
        parameters.append({"name": "If-None-Match", "in": "header", "required": False, "description": says, "schema": _IF_NONE_MATCH})
    if route.may_write:
        says = f"the same request again under the same key is answered the same, and done once; kept {KEPT_HOURS} hours"
        schema = {"type": "string", "minLength": 1, "maxLength": KEY_CHARS_MAX}
        parameters.append({"name": "Idempotency-Key", "in": "header", "required": False, "description": says, "schema": schema})
    if parameters:
        operation["parameters"] = parameters
    if route.body:
        operation["requestBody"] = {"required": True, "content": _content(route.body)}
    if route.lines:
        operation["requestBody"] = {"required": True, "content": _content(route.lines, MEDIA_TYPE)}
    return operation


def _query_parameters(query: type[msgspec.Struct]) -> list[dict[str, Any]]:
    (_,), schemas = msgspec.json.schema_components([query], ref_template=_REF)
    parameters = []
    for name, schema in schemas[query.__name__]["properties"].items():
        parameter = {"name": name, "in": "query", "required": False, "schema": schema}
        if "description" in schema:
            parameter["description"] = schema.pop("description")
        parameters.append(parameter)
    return parameters


def _response(status: int, kind: type[msgspec.Struct], media: str = "application/json") -> dict[str, Any]:
    return {"description": HTTPStatus(status).phrase, "content": _content(kind, media)}


def _content(kind: type[msgspec.Struct], media: str = "application/json") -> dict[str, Any]:
    """What is sent as *media*; of lines, *kind* is what stands in one of them."""
    return {media: {"schema": {"$ref": _REF.format(name=kind.__name__)}}}
