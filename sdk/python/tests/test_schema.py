from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import pytest

from kitbag_tool.schema import arguments_schema, from_json, result_schema, split_docstring, to_json


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    """A point.

    Args:
        x: Distance from the left
    """

    x: int
    y: float = 0.0


class Size(TypedDict):
    width: int


def everything(
    text: str,
    count: Annotated[int, {"minimum": 1}],
    colours: list[Colour],
    point: Point,
    ratio: float = 0.5,
    mode: Literal["a", "b"] = "a",
    path: str | None = None,
    either: int | str | None = None,
    words: dict[str, int] | None = None,
    any: Any = None,
    size: Annotated[Size | None, "The size"] = None,
) -> Point:
    """Do everything.

    In two paragraphs.

    Args:
        text: Some text,
            on two lines
        path (str): A file

    Returns:
        A point: not an argument
    """
    raise NotImplementedError


def test_hints_and_docstrings_become_schema() -> None:
    colours = {"type": "array", "items": {"enum": ["red", "blue"]}}
    point = {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "description": "Distance from the left"},
            "y": {"type": "number"},
        },
        "required": ["x"],
        "additionalProperties": False,
    }
    size = {
        "type": "object",
        "properties": {"width": {"type": "integer"}},
        "required": ["width"],
        "additionalProperties": False,
        "description": "The size",
    }
    assert arguments_schema(everything) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "Some text, on two lines"},
            "count": {"type": "integer", "minimum": 1},
            "colours": colours,
            "point": point,
            "ratio": {"type": "number", "default": 0.5},
            "mode": {"enum": ["a", "b"], "default": "a"},
            "path": {"type": "string", "description": "A file"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "words": {"type": "object", "additionalProperties": {"type": "integer"}},
            "any": {},
            "size": size,
        },
        "required": ["text", "count", "colours", "point"],
        "additionalProperties": False,
    }
    assert result_schema(everything) == point
    assert split_docstring(everything.__doc__ or "")[0].startswith("Do everything.")


def test_only_objects_have_a_result_schema() -> None:
    def text() -> str: ...
    def items() -> list[int]: ...
    def size() -> Size: ...

    assert result_schema(text) is None
    assert result_schema(items) is None
    assert (result_schema(size) or {})["required"] == ["width"]


def test_arguments_without_a_type_are_refused() -> None:
    def untyped(path): ...  # type: ignore[no-untyped-def]
    def many(*paths: str) -> str: ...
    def unknown(path: object) -> str: ...

    for function in (untyped, many, unknown):
        with pytest.raises(TypeError):
            arguments_schema(function)


def test_values_are_converted_in_both_directions() -> None:
    assert from_json({"x": 1}, Point) == Point(1)
    assert from_json(["red"], list[Colour]) == [Colour.RED]
    assert from_json({"a": {"x": 2, "y": 3}}, dict[str, Point] | None) == {"a": Point(2, 3.0)}
    assert from_json(None, Point | None) is None
    assert isinstance(from_json(3, float), float)
    assert to_json([Point(1), Colour.BLUE]) == [{"x": 1, "y": 0.0}, "blue"]
