"""JSON Schema from type hints and docstrings, and values from JSON."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, Union

SIMPLE = {str: "string", bool: "boolean", int: "integer", float: "number"}

#: A section of a docstring that lists arguments.
ARGUMENTS = re.compile(r"^(?:args|arguments|parameters):\s*$", re.IGNORECASE)
ARGUMENT = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
SECTION = re.compile(r"^[A-Z]\w*:\s*$")


def arguments_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the schema of a function's arguments."""
    hints = typing.get_type_hints(function, include_extras=True)
    _, described = split_docstring(inspect.getdoc(function) or "")
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"`{name}` of `{function.__name__}` must be a named argument")
        if name not in hints:
            raise TypeError(f"`{name}` of `{function.__name__}` needs a type")
        optional = parameter.default is not parameter.empty
        property = type_schema(hints[name], optional)
        if name in described:
            property.setdefault("description", described[name])
        if not optional:
            required.append(name)
        elif parameter.default is not None:
            property["default"] = to_json(parameter.default)
        properties[name] = property
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def result_schema(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Returns the schema of a function's result, or `None` if the result is text."""
    hint = typing.get_type_hints(function, include_extras=True).get("return")
    if hint is None or hint in (str, Any, type(None)):
        return None
    schema = type_schema(hint)
    # MCP requires an object.
    return schema if schema.get("type") == "object" else None


def type_schema(hint: Any, optional: bool = False) -> dict[str, Any]:
    """Returns the schema of a type. If `optional`, an absent value takes the place of `None`."""
    origin, parameters = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = type_schema(parameters[0], optional)
        for detail in parameters[1:]:
            schema.update({"description": detail} if isinstance(detail, str) else detail)
        return schema
    if origin in (Union, types.UnionType):
        members = [member for member in parameters if member is not type(None)]
        if not optional and len(members) < len(parameters):
            members.append(type(None))
        if len(members) == 1:
            return type_schema(members[0])
        return {"anyOf": [type_schema(member) for member in members]}
    if origin is Literal:
        return {"enum": list(parameters)}
    if hint in SIMPLE:
        return {"type": SIMPLE[hint]}
    if hint is type(None):
        return {"type": "null"}
    if hint is Any:
        return {}
    if hint is list or origin is list:
        return {"type": "array"} | ({"items": type_schema(parameters[0])} if parameters else {})
    if hint is dict or origin is dict:
        values = type_schema(parameters[1]) if parameters else {}
        return {"type": "object"} | ({"additionalProperties": values} if values else {})
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass_schema(hint)
    if typing.is_typeddict(hint):
        fields = typing.get_type_hints(hint)
        keys: frozenset[str] = getattr(hint, "__required_keys__")
        return _object(
            {name: type_schema(field) for name, field in fields.items()},
            [name for name in fields if name in keys],
        )
    raise TypeError(f"the type {hint} has no JSON Schema")


def from_json(value: Any, hint: Any) -> Any:
    """Converts a value that matches the schema of the type."""
    origin, parameters = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return from_json(value, parameters[0])
    if origin in (Union, types.UnionType):
        members = [member for member in parameters if member is not type(None)]
        return value if value is None or len(members) != 1 else from_json(value, members[0])
    if hint is float:
        return float(value)
    if hint is int:
        # JSON Schema accepts `3.0` as an integer.
        return int(value)
    if origin is list:
        return [from_json(item, parameters[0]) for item in value]
    if origin is dict:
        return {key: from_json(item, parameters[1]) for key, item in value.items()}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = typing.get_type_hints(hint, include_extras=True)
        return hint(**{name: from_json(item, hints[name]) for name, item in value.items()})
    return value


def to_json(value: Any) -> Any:
    """Converts dataclasses and enums, also inside other values, for `json.dumps`."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: to_json(getattr(value, field.name)) for field in fields}
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    return value


def split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Returns the text of a docstring without its sections, and the descriptions of arguments."""
    text: list[str] = []
    described: dict[str, str] = {}
    section = ""
    name = None
    for line in docstring.splitlines():
        if SECTION.match(line) or ARGUMENTS.match(line):
            section = "arguments" if ARGUMENTS.match(line) else "other"
        elif not section:
            text.append(line)
        elif section == "arguments" and line.strip():
            if found := ARGUMENT.match(line.strip()):
                name = found[1]
                described[name] = found[2]
            elif name is not None:
                described[name] += f" {line.strip()}"
    return "\n".join(text).strip(), described


def _dataclass_schema(hint: type) -> dict[str, Any]:
    hints = typing.get_type_hints(hint, include_extras=True)
    _, described = split_docstring(inspect.getdoc(hint) or "")
    properties: dict[str, Any] = {}
    required = []
    for field in dataclasses.fields(hint):
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        # A result has all fields, so `None` must match also if the field has a default.
        property = type_schema(hints[field.name])
        if field.name in described:
            property.setdefault("description", described[field.name])
        if needed:
            required.append(field.name)
        properties[field.name] = property
    return _object(properties, required)


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema
