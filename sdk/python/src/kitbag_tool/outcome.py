"""Outcomes of a call, in Python's own types."""

from __future__ import annotations

from dataclasses import dataclass, field


class ToolError(Exception):
    """The failure of a tool: one sentence that the model can act on.

    `transient` means that the same call may succeed later. `trace` has further lines for the
    maintainer of the tool; the model does not see them.
    """

    def __init__(
        self, message: str, *, transient: bool = False, trace: list[str] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.transient = transient
        self.trace = trace or []


@dataclass(frozen=True)
class Success:
    """The result for the model."""

    text: str


@dataclass(frozen=True)
class Failure:
    """The failure, as in `ToolError`."""

    message: str
    trace: list[str] = field(default_factory=list)
    transient: bool = False


@dataclass(frozen=True)
class Question:
    """A question for a person. The call runs again from the start with the answer."""

    id: str
    text: str
    answer_type: str
    default: str | None = None


Outcome = Success | Failure | Question


class NeedsAnswer(BaseException):
    """Ends a run with a question.

    It is not an `Exception`, so that a tool's own `except Exception` does not catch it.
    """

    def __init__(self, question: Question) -> None:
        super().__init__(question.id)
        self.question = question
