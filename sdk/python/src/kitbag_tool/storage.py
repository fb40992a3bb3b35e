"""Values that outlive a call, in the stores that the grant of `storage` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .bindings import Err, keyvalue, reason_of
from .outcome import ToolError


class Store:
    """A store of values by key."""

    def __init__(self, name: str) -> None:
        if keyvalue is None:
            raise ToolError("storage exists only in kitbag")
        self.name = name
        with self._errors():
            self._bucket: Any = keyvalue.open(name)

    def get(self, key: str) -> bytes | None:
        """Returns a value."""
        with self._errors():
            value: bytes | None = self._bucket.get(key)
            return value

    def set(self, key: str, value: bytes | str) -> None:
        """Stores a value. A string is stored in UTF-8."""
        with self._errors():
            self._bucket.set(key, value.encode() if isinstance(value, str) else value)

    def delete(self, key: str) -> None:
        """Deletes a value, if it exists."""
        with self._errors():
            self._bucket.delete(key)

    def __contains__(self, key: str) -> bool:
        with self._errors():
            return bool(self._bucket.exists(key))

    def keys(self) -> Iterator[str]:
        """Yields all keys, in any order."""
        cursor = None
        while True:
            with self._errors():
                page = self._bucket.list_keys(cursor)
            yield from page.keys
            cursor = page.cursor
            if cursor is None:
                return

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Err as error:
            raise ToolError(f"the store `{self.name}` failed: {reason_of(error.value)}") from None


def open(name: str = "default") -> Store:
    """Opens a store."""
    return Store(name)
