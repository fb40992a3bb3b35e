import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from kitbag_tool import ToolError, ask, http, registry, tool
from kitbag_tool.testing import Failure, Outcome, Question, Response, Success, call


@dataclass
class Total:
    words: int


@tool
def count(path: str | None = None) -> Total:
    """Count words."""
    return Total(len(Path(path or ask.text("path", "Which file?")).read_text().split()))


@tool(name="fetch", grants={"http": ["https://example.com/**"]}, format=lambda url: f"read {url}")
def fetch_title(url: str) -> str:
    return str(http.get(url).check().json()["title"])


@tool
def busy() -> str:
    raise ToolError("the server is busy", transient=True, trace=["first"])


@tool
def broken() -> str:
    return {}["key"]


def question(action: object) -> Question:
    @tool(name="question")
    def asks() -> str:
        return str(action())  # type: ignore[operator]

    outcome = call("question")
    del registry.registered["question"]
    assert isinstance(outcome, Question)
    return outcome


def test_the_module_exports_the_world() -> None:
    assert "WitWorld" in globals()
    tools = json.loads(registry.describe())["tools"]
    assert [tool["name"] for tool in tools] == ["count", "fetch", "busy", "broken"]
    assert tools[0]["description"] == "Count words."
    assert tools[0]["outputSchema"]["required"] == ["words"]
    assert tools[1]["grants"] == {"http": ["https://example.com/**"]}


def test_a_question_ends_the_run_until_it_has_an_answer(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two")
    assert call(count) == Question("path", "Which file?", "text")
    assert call(count, answers={"path": "a.txt"}, root=tmp_path) == Success('{"words": 2}')
    wrong = Failure("the answer to `path` is 3, which is not a text")
    assert call(count, answers={"path": 3}) == wrong


def test_answer_types_have_options_consent_and_category() -> None:
    assert question(lambda: ask.boolean("q", "", suggest=True)) == Question("q", "", "boolean", "true")
    consent = question(lambda: ask.consent("q", "", category="db:drop"))
    assert consent.answer_type == '{"boolean":{},"consent":true,"class":"db:drop"}'
    select = question(lambda: ask.select("q", "", ["a", ("b", "Second")]))
    assert select.answer_type == '{"select":{"options":["a",{"value":"b","title":"Second"}]}}'
    integer = question(lambda: ask.integer("q", "", suggest=3))
    assert (integer.answer_type, integer.default) == ("integer", "3")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (Response(200, b'{"title": "News"}'), Success("News")),
        (Response(404), Failure("`https://example.com/a` has status 404")),
        (Response(503), Failure("`https://example.com/a` has status 503", transient=True)),
    ],
)
def test_responses_are_recorded(response: Response, expected: Outcome) -> None:
    url = "https://example.com/a"
    assert call(fetch_title, {"url": url}, responses={url: response}) == expected


def test_requests_need_a_url_and_a_recording() -> None:
    for url in ("ftp://example.com/", "https:///a", "https://example.com/b"):
        assert isinstance(call(fetch_title, {"url": url}), Failure)


def test_errors_are_failures_with_a_trace() -> None:
    assert call(busy) == Failure("the server is busy", ["first"], True)
    missing = call(count, {"path": "none.txt"})
    assert isinstance(missing, Failure)
    assert missing.message == "`none.txt`: No such file or directory"
    failed = call(broken)
    assert isinstance(failed, Failure)
    assert failed.message == "the tool failed: KeyError: 'key'"
    assert failed.trace[-1] == "KeyError: 'key'"
    assert call("none") == Failure("the component has no tool `none`")


def test_a_call_is_rendered_in_one_line() -> None:
    assert registry.render("count", '{"path":"a.txt"}') == "count path=a.txt"
    assert registry.render("fetch", '{"url":"a"}') == "read a"
    assert registry.render("count", json.dumps({"path": "a" * 80})).endswith("a…")
