"""Calls of other tools, by the aliases that the grant of `tools` names.

A question of another tool ends the run. It runs again from the start with the answer, so make the
same calls in the same order in each run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .bindings import Err, tools as bindings
from .outcome import ToolError


@dataclass(frozen=True)
class Answer:
    """The answer of another tool."""

    text: str
    #: The parsed result, if the tool has an output schema.
    structured: Any
    #: Content in addition to the text, in the types of the bindings.
    content: Sequence[Any]


@dataclass(frozen=True)
class ToolInfo:
    """A tool that can be called."""

    alias: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None


class Pending:
    """A running call of another tool."""

    def __init__(self, pending: Any) -> None:
        self._pending = pending

    def finish(self) -> Answer:
        """Waits for the end of the call and returns its answer."""
        return _answer(self._pending.finish)


def call(alias: str, /, **arguments: Any) -> Answer:
    """Calls a tool and waits for its answer. A failure of the tool is raised as `ToolError`."""
    return _answer(_bindings().call, alias, json.dumps(arguments))


def start(alias: str, /, **arguments: Any) -> Pending:
    """Starts a call. Several calls run at once."""
    return Pending(_checked(_bindings().start, alias, json.dumps(arguments)))


def list() -> Sequence[ToolInfo]:
    """Returns the tools that can be called."""
    return [_info(info) for info in _bindings().list()]


def find(alias: str) -> ToolInfo | None:
    """Returns the tool with this alias, if it can be called."""
    info = _bindings().find(alias)
    return None if info is None else _info(info)


def _bindings() -> Any:
    if bindings is None:
        raise ToolError("other tools exist only in kitbag")
    return bindings


def _answer(function: Callable[..., Any], *arguments: str) -> Answer:
    answer = _checked(function, *arguments)
    structured = None if answer.structured is None else json.loads(answer.structured)
    return Answer(answer.text, structured, answer.content)


def _checked(function: Callable[..., Any], *arguments: str) -> Any:
    try:
        return function(*arguments)
    except Err as error:
        info = error.value
        raise ToolError(info.message, transient=info.transient, trace=info.trace) from None


def _info(info: Any) -> ToolInfo:
    output = None if info.output_schema is None else json.loads(info.output_schema)
    return ToolInfo(info.alias, info.description, json.loads(info.input_schema), output)
