import json
from collections.abc import Iterator
from typing import Any

import pytest

from kitbag_tool import items, prompt, registry, resource, tool
from kitbag_tool.testing import Failure, Success, call


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    lists: list[dict[str, Any]] = [registry.registered, items.prompts, items.resources]
    before = [dict(them) for them in lists]
    for them in lists:
        them.clear()
    yield
    for them, old in zip(lists, before):
        them.clear()
        them.update(old)


def test_prompts_are_described_by_their_function() -> None:
    @prompt(title="Shorten a text")
    def shorten(words: str, style: str | None = None) -> str:
        """Shorten a text.

        Args:
            words: The number of words
        """
        return f"Use {words} words. {style or ''}".rstrip()

    expected = {
        "name": "shorten",
        "title": "Shorten a text",
        "description": "Shorten a text.",
        "arguments": [
            {"name": "words", "required": True, "description": "The number of words"},
            {"name": "style", "required": False},
        ],
    }
    assert json.loads(registry.describe())["prompts"] == [expected]
    assert call("prompt/shorten", {"words": "9"}) == Success("Use 9 words.")
    assert call("prompt/none") == Failure("the component has no prompt `none`")


def test_resources_are_found_by_their_uri() -> None:
    @tool
    def own() -> str:
        return ""

    @resource("notes://all", mime_type="text/plain")
    def every() -> str:
        return "all"

    @resource("notes://one/{name}.txt")
    def one(name: str) -> str | None:
        return None if name == "none" else name

    @resource("notes://below/{+path}")
    def below(path: str) -> str:
        return path

    described = json.loads(registry.describe())
    assert described["name"] == "own"
    assert described["resources"] == [
        {"uri": "notes://all", "name": "every", "mimeType": "text/plain"}
    ]
    templates = [it["uriTemplate"] for it in described["resourceTemplates"]]
    assert templates == ["notes://one/{name}.txt", "notes://below/{+path}"]
    for uri, expected in [
        ("notes://all", "all"),
        ("notes://one/a%20b.txt", "a b"),
        ("notes://below/a/b", "a/b"),
    ]:
        assert call("resource/read", {"uri": uri}) == Success(expected)
    for uri in ("notes://one/none.txt", "notes://one/a/b.txt", "notes://one/atxt", "x:notes://all"):
        failure = Failure(f"the component has no resource `{uri}`")
        assert call("resource/read", {"uri": uri}) == failure


def test_functions_that_do_not_fit_are_refused() -> None:
    def number(words: int) -> str: ...
    def other(name: str) -> str: ...

    with pytest.raises(TypeError, match="`words` of `number` must be a string"):
        prompt()(number)
    with pytest.raises(TypeError, match="must have the variables"):
        resource("notes://{title}")(other)
    with pytest.raises(TypeError, match="no option `grant`"):
        tool(grant={})  # type: ignore[call-overload]
