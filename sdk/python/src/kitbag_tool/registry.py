"""The tools of a component, and their calls."""

from __future__ import annotations

import inspect
import json
import os
import traceback
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, overload

from . import state
from .outcome import Failure, NeedsAnswer, Outcome, Success, ToolError
from .schema import arguments_schema, from_json, result_schema, split_docstring, to_json
from .world import WitWorld

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Registered:
    """A function that is a tool."""

    function: Callable[..., Any]
    description: dict[str, Any]
    format: Callable[..., str] | None

    def arguments(self, arguments: dict[str, Any]) -> dict[str, Any]:
        hints = typing.get_type_hints(self.function, include_extras=True)
        return {name: from_json(value, hints[name]) for name, value in arguments.items()}


#: The tools of the component, by name.
registered: dict[str, Registered] = {}


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    annotations: dict[str, Any] | None = None,
    grants: dict[str, Any] | None = None,
    approve: str | dict[str, Any] | None = None,
    format: Callable[..., str] | None = None,
) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Makes a function a tool of the component.

    Its name, description, arguments and result come from the function: its type hints become JSON
    Schema, its docstring the description, and the docstring's section `Args:` the descriptions of
    arguments. A result of a type other than `str` is sent as JSON.

    `grants` are the requested grants, `approve` names the calls that should need approval
    (`"on-write"`, `"always"` or `{"when": {"path": "secrets/**"}}`), `annotations` are MCP's hints.
    `format` receives the arguments and returns one line, for the person who approves the call.
    """
    if function is None:
        return lambda function: _register(function, **options)
    return _register(function)


def _register(
    function: Function,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    annotations: dict[str, Any] | None = None,
    grants: dict[str, Any] | None = None,
    approve: str | dict[str, Any] | None = None,
    format: Callable[..., str] | None = None,
) -> Function:
    name = name or function.__name__
    text, _ = split_docstring(inspect.getdoc(function) or "")
    described = {
        "name": name,
        "title": title,
        "description": description or text or None,
        "inputSchema": arguments_schema(function),
        "outputSchema": result_schema(function),
        "annotations": annotations,
        "grants": grants,
        "approve": approve,
    }
    present = {key: value for key, value in described.items() if value is not None}
    registered[name] = Registered(function, present, format)
    # componentize-py takes the exports from the app's own module.
    function.__globals__.setdefault("WitWorld", WitWorld)
    return function


def describe() -> str:
    """Returns the description of all tools in the form of the contract."""
    tools = [tool.description for tool in registered.values()]
    return json.dumps(tools[0] if len(tools) == 1 else {"tools": tools}, ensure_ascii=False)


def render(name: str, arguments: str) -> str:
    """Renders a call in one line, for the person who approves it."""
    tool = _find(name)
    if tool is not None and tool.format is not None:
        return tool.format(**tool.arguments(json.loads(arguments)))
    values = json.loads(arguments)
    return " ".join([name, *(f"{key}={_short(value)}" for key, value in values.items())])


def run(name: str, root: str, arguments: str, answers: str) -> Outcome:
    """Runs one call. An exception of the tool is a failure, with its traceback for the maintainer."""
    tool = _find(name)
    if tool is None:
        return Failure(f"the component has no tool `{name}`")
    state.current.answers = json.loads(answers)
    try:
        os.chdir(root)
    except OSError:
        # Without a granted directory there are no files.
        pass
    try:
        result = tool.function(**tool.arguments(json.loads(arguments)))
        if isinstance(result, str) and "outputSchema" not in tool.description:
            return Success(result)
        return Success(json.dumps(to_json(result), ensure_ascii=False))
    except NeedsAnswer as needed:
        return needed.question
    except ToolError as error:
        return Failure(error.message, error.trace, error.transient)
    except OSError as error:
        reason = error.strerror or str(error)
        message = reason if error.filename is None else f"`{error.filename}`: {reason}"
        return Failure(message, _trace(error))
    except Exception as error:
        return Failure(f"the tool failed: {type(error).__name__}: {error}", _trace(error))


def _find(name: str) -> Registered | None:
    # A configuration may give the only tool another name.
    if len(registered) == 1:
        return next(iter(registered.values()))
    return registered.get(name)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def _trace(error: BaseException) -> list[str]:
    lines = "".join(traceback.format_exception(error)).splitlines()
    return lines[-20:]
