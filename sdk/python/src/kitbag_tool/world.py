"""The exports of the component, which componentize-py looks for in the app's module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from . import registry
from .bindings import types
from .outcome import Failure, Outcome, Success

Function = TypeVar("Function", bound=Callable[..., Any])


class WitWorld:
    """The exports of `kitbag:tool/described-tool`."""

    def describe(self) -> str:
        return registry.describe()

    def run(self, ctx: Any, name: str, arguments: str, answers: str) -> Any:
        if ctx.action == types.Action.FORMAT_ARGUMENTS:
            return types.Outcome_Success(registry.render(name, arguments))
        return _outcome(registry.run(name, ctx.root, arguments, answers))


def exported(function: Function) -> Function:
    """Exports the world from the module of a function, where componentize-py looks for it."""
    function.__globals__.setdefault("WitWorld", WitWorld)
    return function


def _outcome(outcome: Outcome) -> Any:
    if isinstance(outcome, Success):
        return types.Outcome_Success(outcome.text)
    if isinstance(outcome, Failure):
        info = types.ErrorInfo(outcome.message, outcome.trace, outcome.transient)
        return types.Outcome_Error(info)
    question = types.Question(outcome.id, outcome.text, outcome.answer_type, outcome.default)
    return types.Outcome_NeedsInput(question)
