"""The tools of a component, and their calls."""

from __future__ import annotations

import inspect
import json
import os
import traceback
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, overload

from . import items, state, world
from .outcome import Failure, NeedsAnswer, Outcome, Success, ToolError
from .schema import arguments_schema, from_json, result_schema, split_docstring, to_json

if TYPE_CHECKING:
    from typing_extensions import Unpack

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


class Options(TypedDict, total=False):
    """The options of `tool`."""

    name: str
    title: str
    description: str
    annotations: dict[str, Any]
    grants: dict[str, Any]
    approve: str | dict[str, Any]
    format: Callable[..., str]


@overload
def tool(function: Function, /) -> Function: ...


@overload
def tool(**options: Unpack[Options]) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Makes a function a tool of the component.

    Its name, description, arguments and result come from the function: its type hints become JSON
    Schema, its docstring the description, and the docstring's section `Args:` the descriptions of
    arguments. A result of a type other than `str` is sent as JSON.

    `grants` are the requested grants, `approve` names the calls that should need approval
    (`"on-write"`, `"always"` or `{"when": {"path": "secrets/**"}}`), `annotations` are MCP's hints.
    `format` receives the arguments and returns one line, for the person who approves the call.
    """
    for option in options.keys() - Options.__annotations__.keys():
        raise TypeError(f"`tool` has no option `{option}`")
    if function is None:
        return lambda function: _register(function, **options)
    return _register(function)


def _register(
    function: Function, *, format: Callable[..., str] | None = None, **options: Any
) -> Function:
    text, _ = split_docstring(inspect.getdoc(function) or "")
    described = {
        "name": function.__name__,
        "description": text or None,
        "inputSchema": arguments_schema(function),
        "outputSchema": result_schema(function),
        **{key: value for key, value in options.items() if value},
    }
    present = {key: value for key, value in described.items() if value is not None}
    registered[present["name"]] = Registered(function, present, format)
    return world.exported(function)


def describe() -> str:
    """Returns the description of the component in the form of the contract."""
    tools = [tool.description for tool in registered.values()]
    described = tools[0] if len(tools) == 1 else {"tools": tools}
    return json.dumps(described | items.described(), ensure_ascii=False)


def render(name: str, arguments: str) -> str:
    """Renders a call in one line, for the person who approves it."""
    tool = _find(name)
    if tool is not None and tool.format is not None:
        return tool.format(**tool.arguments(json.loads(arguments)))
    values = json.loads(arguments)
    return " ".join([name, *(f"{key}={_short(value)}" for key, value in values.items())])


def run(name: str, root: str, arguments: str, answers: str) -> Outcome:
    """Runs one call. An exception of the tool is a failure, with its traceback for the maintainer."""
    state.current.answers = json.loads(answers)
    try:
        os.chdir(root)
    except OSError:
        # Without a granted directory there are no files.
        pass
    try:
        return Success(_result(name, json.loads(arguments)))
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


def _result(name: str, arguments: dict[str, Any]) -> str:
    """Calls a tool or a prompt, or reads a resource."""
    if name == "resource/read":
        result = items.read(arguments["uri"])
        if result is None:
            raise ToolError(f"the component has no resource `{arguments['uri']}`")
    elif name.startswith("prompt/"):
        prompt = items.prompts.get(name.removeprefix("prompt/"))
        if prompt is None:
            raise ToolError(f"the component has no {name.replace('/', ' `', 1)}`")
        result = prompt.function(**arguments)
    else:
        tool = _find(name)
        if tool is None:
            raise ToolError(f"the component has no tool `{name}`")
        result = tool.function(**tool.arguments(arguments))
        if "outputSchema" in tool.description:
            return json.dumps(to_json(result), ensure_ascii=False)
    if isinstance(result, str):
        return result
    return json.dumps(to_json(result), ensure_ascii=False)


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
