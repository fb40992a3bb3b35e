"""Values that the configuration grants to the tool (`[tools.NAME.config]`)."""

from __future__ import annotations

from .bindings import Err, config
from .outcome import ToolError


def get(key: str, default: str | None = None) -> str | None:
    """Returns a value, or the default if it is not configured."""
    if config is None:
        return default
    try:
        value: str | None = config.get(key)
    except Err as error:
        raise ToolError(f"the value `{key}` cannot be read: {error.value.value}") from None
    return default if value is None else value


def all() -> dict[str, str]:
    """Returns all values."""
    if config is None:
        return {}
    try:
        return dict(config.get_all())
    except Err as error:
        raise ToolError(f"the configuration cannot be read: {error.value.value}") from None
