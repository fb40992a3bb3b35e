"""Questions for a person.

Without an answer the run ends. The tool then runs again from the start, with the answer. So ask
before you change something.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from . import state
from .outcome import NeedsAnswer, Question, ToolError

#: A value, or a value with a title.
Option = str | tuple[str, str]


def text(id: str, question: str, *, suggest: str | None = None, category: str | None = None) -> str:
    """Asks for text. A suggestion is never used as an answer."""
    return str(_ask(id, question, "text", {}, str, suggest, category))


def boolean(
    id: str, question: str, *, suggest: bool | None = None, category: str | None = None
) -> bool:
    """Asks for yes or no."""
    return bool(_ask(id, question, "boolean", {}, bool, suggest, category))


def consent(id: str, question: str, *, category: str | None = None) -> bool:
    """Asks for consent to a step that is hard to undo. A model can never answer."""
    return bool(_ask(id, question, "boolean", {}, bool, None, category, consent=True))


def integer(
    id: str, question: str, *, suggest: int | None = None, category: str | None = None
) -> int:
    """Asks for an integer."""
    return int(_ask(id, question, "integer", {}, int, suggest, category))


def number(
    id: str, question: str, *, suggest: float | None = None, category: str | None = None
) -> float:
    """Asks for a number."""
    return float(_ask(id, question, "number", {}, (int, float), suggest, category))


def select(
    id: str,
    question: str,
    options: Iterable[Option],
    *,
    suggest: str | None = None,
    category: str | None = None,
) -> str:
    """Asks for one of several options."""
    return str(_ask(id, question, "select", _options(options), str, suggest, category))


def multi_select(
    id: str,
    question: str,
    options: Iterable[Option],
    *,
    suggest: list[str] | None = None,
    category: str | None = None,
) -> list[str]:
    """Asks for any of several options."""
    return list(_ask(id, question, "multi-select", _options(options), list, suggest, category))


def form(id: str, question: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    """Asks for several answers. A field is an object as in the contract: `id`, `type`, …"""
    return dict(_ask(id, question, "form", {"fields": fields}, dict, None, None))


def _ask(
    id: str,
    question: str,
    kind: str,
    details: dict[str, Any],
    accepted: type | tuple[type, ...],
    suggest: Any,
    category: str | None,
    consent: bool = False,
) -> Any:
    answer_type = kind
    if details or category is not None or consent:
        declared: dict[str, Any] = {kind: details}
        if consent:
            declared["consent"] = True
        if category is not None:
            declared["class"] = category
        answer_type = json.dumps(declared, separators=(",", ":"), ensure_ascii=False)
    if id not in state.current.answers:
        default = suggest if suggest is None or isinstance(suggest, str) else json.dumps(suggest)
        raise NeedsAnswer(Question(id, question, answer_type, default))
    answer = state.current.answers[id]
    # In Python a boolean is also an integer.
    wrong = isinstance(answer, bool) and accepted is not bool
    if wrong or not isinstance(answer, accepted):
        shown = json.dumps(answer, ensure_ascii=False)
        raise ToolError(f"the answer to `{id}` is {shown}, which is not a {kind}")
    return answer


def _options(options: Iterable[Option]) -> dict[str, Any]:
    return {
        "options": [
            option if isinstance(option, str) else {"value": option[0], "title": option[1]}
            for option in options
        ]
    }
