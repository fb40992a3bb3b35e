"""Calls of tools in a tool's own tests, without a component."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import registry, state
from .http import Response
from .outcome import Failure, Outcome, Question, Success

__all__ = ["Failure", "Question", "Response", "Success", "call"]


def call(
    tool: str | Callable[..., Any],
    arguments: dict[str, Any] | None = None,
    *,
    answers: dict[str, Any] | None = None,
    responses: dict[str, Response] | None = None,
    root: str | Path = ".",
) -> Outcome:
    """Calls a tool and returns its outcome.

    `root` is the directory for relative paths, `answers` has answers by the question's id, and
    `responses` the responses of the web by URL. Defaults of arguments come from the function.
    """
    name = tool if isinstance(tool, str) else _name(tool)
    before = os.getcwd()
    state.current = state.State(responses=responses or {})
    try:
        return registry.run(
            name, str(root), json.dumps(arguments or {}), json.dumps(answers or {})
        )
    finally:
        os.chdir(before)
        state.current = state.State()


def _name(function: Callable[..., Any]) -> str:
    return next(name for name, tool in registry.registered.items() if tool.function is function)
