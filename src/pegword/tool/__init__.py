"""The `memory` tool: how a model itself saves, searches, lists, reads and deletes memories, in the session that it works in.

`schema` says what is offered, `arguments` reads what a model sends, `calling` does it and answers with one text.
"""
