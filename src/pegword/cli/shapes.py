"""Results as JSON for programs: the keys of the HTTP API, always all of them. Every time is ISO 8601 in UTC with ``Z``."""

from typing import TYPE_CHECKING, Any

from pegword.cli.times import time_text

if TYPE_CHECKING:
    from pegword.core.caller import Session
    from pegword.core.memory import Memory, Version
    from pegword.core.people import Key, SharedScope, User
    from pegword.services.memories import History, Page, SearchResult
    from pegword.services.receipts import Explanation
    from pegword.services.turns import Turn
    from pegword.services.writing import Saved
    from pegword.settings import Settings
    from pegword.tool.calling import ToolResult


def memory(m: "Memory", settings: "Settings") -> dict[str, Any]:
    """A whole memory."""
    from pegword.assembly import clock_us

    return {
        "memory_id": m.memory_id,
        "name": m.name,
        "scope": m.scope.kind,
        "scope_id": m.scope.id,
        "type": settings.kind_word(m.kind, m.kind_word),
        "description": m.description,
        "content": m.content,
        "tags": list(m.tags),
        "priority": m.priority,
        "source": m.source,
        "author": m.author,
        "verified": m.verified,
        "verified_at": time_text(m.verified_at),
        "confidence": m.confidence,
        "expires_at": time_text(m.expires_at),
        "created": time_text(m.created),
        "updated": time_text(m.updated),
        "version": m.version,
        "hash": m.content_hash,
        "access_count": m.access_count,
        "last_accessed": time_text(m.last_accessed) or "",
        "expired": m.expired(clock_us()),
    }


def saved(result: "Saved", settings: "Settings") -> dict[str, Any]:
    """What a save did, and the memory as it now stands."""
    return {**memory(result.memory, settings), "outcome": result.outcome, "warnings": list(result.warnings)}


def page(result: "Page", settings: "Settings") -> dict[str, Any]:
    """A list and the number of all matches."""
    return {
        "memories": [memory(m, settings) for m in result.memories],
        "total": result.total,
        "truncated": result.total > len(result.memories),
    }


def search(result: "SearchResult", settings: "Settings") -> dict[str, Any]:
    """What was found, each with its score, and what the query was read as."""
    return {
        "memories": [{**memory(hit.memory, settings), "score": hit.score} for hit in result.hits],
        "total": result.total,
        "truncated": result.total > len(result.hits),
        "terms": list(result.terms),
        "left_out": list(result.left_out),
        "left_out_n": result.left_out_n,
        "cut": result.cut,
    }


def version(v: "Version", settings: "Settings") -> dict[str, Any]:
    """A memory as it stood after one change."""
    return {
        "memory_id": v.memory_id,
        "version": v.version,
        "action": v.action,
        "name": v.name,
        "type": settings.kind_word(v.kind),
        "description": v.description,
        "content": v.content,
        "tags": list(v.tags),
        "priority": v.priority,
        "source": v.source,
        "author": v.author,
        "verified": v.verified,
        "confidence": v.confidence,
        "expires_at": time_text(v.expires_at),
        "saved": time_text(v.saved),
        "hash": v.content_hash,
    }


def history(there: "History", settings: "Settings") -> dict[str, Any]:
    """Versions of a memory, newest first."""
    return {
        "memory_id": there.memory.memory_id,
        "name": there.memory.name,
        "versions": [version(v, settings) for v in there.versions],
        "total": there.total,
    }


def turn(result: "Turn", settings: "Settings") -> dict[str, Any]:
    """What belongs before the model."""
    return {
        "block": result.block,
        "hint": result.hint,
        "text": result.text,
        "nudge": {"kind": result.nudge.kind, "text": result.nudge.text} if result.nudge else None,
        "in_scope": result.in_scope,
        "receipt": result.receipt,
        "memories": [
            {
                "memory_id": shown.memory.memory_id,
                "name": shown.memory.name,
                "scope": shown.memory.scope.kind,
                "scope_id": shown.memory.scope.id,
                "type": settings.kind_word(shown.memory.kind, shown.memory.kind_word),
                "score": shown.score,
                "pointer": shown.pointer,
            }
            for shown in result.shown
        ],
        "index": result.index,
    }


def explanation(e: "Explanation") -> dict[str, Any]:
    """Why a turn showed what it showed."""
    return {
        "receipt": e.receipt,
        "mode": e.frame.mode,
        "k": e.frame.k,
        "budget_chars": e.frame.budget_chars,
        "preview_chars": e.frame.preview_chars,
        "in_scope": e.frame.in_scope,
        "at": time_text(e.frame.at),
        "terms": [{"term": t.term, "memories": t.memories, "idf": t.idf, "messages": list(t.messages)} for t in e.terms],
        "left_out": list(e.left_out),
        "left_out_n": e.left_out_n,
        "considered": [
            {
                "memory_id": c.memory_id,
                "version": c.version,
                "name": c.name,
                "scope": c.scope.kind,
                "scope_id": c.scope.id,
                "score": c.score,
                "why": c.why,
                "shown": c.shown,
                "parts": [dict(part) for part in c.parts],
                "terms": dict(c.terms),
            }
            for c in e.considered
        ],
        "block": e.block,
    }


def user(u: "User") -> dict[str, Any]:
    """A user."""
    return {"user_id": u.user_id, "name": u.name, "email": u.email, "created": time_text(u.created)}


def key(k: "Key") -> dict[str, Any]:
    """A key, without its token."""
    from pegword.core.caller import RIGHTS

    return {
        "key_id": k.key_id,
        "user": k.user_name,
        "name": k.label,
        "scopes": list(RIGHTS[: RIGHTS.index(k.right) + 1]),
        "project_word": k.project_word,
        "created": time_text(k.created),
        "expires_at": time_text(k.expires_at),
        "revoked_at": time_text(k.revoked_at),
    }


def tool_result(result: "ToolResult", settings: "Settings") -> dict[str, Any]:
    """What a call of the tool came to."""
    return {
        "text": result.text,
        "is_error": result.is_error,
        "outcome": result.outcome,
        "memories": [
            {
                "memory_id": m.memory_id, "name": m.name, "scope": m.scope.kind, "scope_id": m.scope.id,
                "type": settings.kind_word(m.kind, m.kind_word), "version": m.version,
            }
            for m in result.memories
        ],
    }  # fmt: skip


def session(s: "Session") -> dict[str, Any]:
    """A session, with what its user may do at this moment."""
    from pegword.core.caller import scope_words

    access = "write" if s.project_write else "read"
    return {
        "session_id": s.session_id,
        "kind": s.kind,
        "user": "" if s.anonymous else s.user_name,
        "user_id": "" if s.anonymous else s.user_id,
        "workstream_id": s.workstream_id,
        "shared": s.workstream_shared,
        "project_id": s.project_id,
        "project_access": access if s.project_id else "none",
        "persona": s.persona,
        "memory": s.memory,
        "parent_id": s.parent_id,
        "scopes": list(scope_words(s)),
        "resumed": s.resumed,
        "closed": s.closed,
        "created": time_text(s.created),
    }


def shared(there: "SharedScope") -> dict[str, Any]:
    """A project or a workstream with members."""
    return {
        "kind": there.scope.kind,
        "id": there.scope.id,
        "title": there.title,
        "owner": there.owner_name,
        "members": [{"user": member.user_name, "write": member.write} for member in there.members],
        "archived": there.archived,
        "created": time_text(there.created),
    }
