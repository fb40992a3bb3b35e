"""The state of the current run. Each run has its own instance of the component."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .http import Response


@dataclass
class State:
    """The current run."""

    answers: dict[str, Any] = field(default_factory=dict)
    #: Recorded responses by URL, in a tool's own tests.
    responses: dict[str, Response] = field(default_factory=dict)


current = State()
