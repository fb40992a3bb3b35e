"""Reports of a running tool, and content in addition to its text.

In a tool's own tests, reports do nothing and all content is accepted.
"""

from __future__ import annotations

from typing import Any

from .bindings import Err, host
from .outcome import ToolError


def log(message: str, level: str = "info") -> None:
    """Logs a message for the maintainer of the tool; the model does not see it.

    `level` is `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
    """
    if host is not None:
        host.log(host.Level[level.upper()], message)


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Reports the amount done and, if known, the total, in any unit. The amount must rise."""
    if host is not None:
        host.progress(float(done), None if total is None else float(total), message)


def image(data: bytes, mime_type: str = "image/png") -> None:
    """Adds an image to the answer."""
    if host is not None:
        _emit(host.Content_Image(host.Media(data, mime_type)))


def audio(data: bytes, mime_type: str) -> None:
    """Adds an audio clip to the answer."""
    if host is not None:
        _emit(host.Content_Audio(host.Media(data, mime_type)))


def document(uri: str, content: str | bytes, mime_type: str | None = None) -> None:
    """Adds a document to the answer. The URI has a scheme: `file:///workspace/report.html`."""
    if host is not None:
        text = isinstance(content, str)
        body = host.ResourceBody_Text(content) if text else host.ResourceBody_Blob(content)
        _emit(host.Content_Resource(host.Resource(uri, mime_type, body)))


def link(
    uri: str,
    name: str,
    *,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
) -> None:
    """Adds a link to the answer."""
    if host is not None:
        _emit(host.Content_Link(host.Link(uri, name, title, description, mime_type, size)))


def _emit(content: Any) -> None:
    try:
        host.emit(content)
    except Err as error:
        raise ToolError(error.value) from None
