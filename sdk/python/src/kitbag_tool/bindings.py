"""The generated bindings of the contract, which exist only while a component is built and run.

componentize-py includes only modules that are imported while the component is built, so all
bindings are imported here.
"""

from importlib import import_module
from typing import Any


def _module(name: str) -> Any:
    """Imports a module of the bindings. Returns `None` outside a component."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        return None


types = _module("wit_world.imports.kitbag_tool_types")
host = _module("wit_world.imports.host")
tools = _module("wit_world.imports.tools")
http_types = _module("wit_world.imports.wasi_http_types")
http_handler = _module("wit_world.imports.outgoing_handler")
streams = _module("wit_world.imports.streams")
config = _module("wit_world.imports.wasi_config_store")
keyvalue = _module("wit_world.imports.wasi_keyvalue_store")


class NeverRaised(Exception):
    """The type of `Err` outside a component."""

    value: Any


_results = _module("componentize_py_types")
#: The exception of a result that is an error; `value` is the error.
Err: Any = NeverRaised if _results is None else _results.Err


def reason_of(error: Any) -> str:
    """Returns the words of an error of the bindings: `Error_NoSuchStore` becomes `no such store`."""
    name = type(error).__name__.rpartition("_")[2]
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in name).strip()
    detail = getattr(error, "value", None)
    if detail and words == "other":
        return str(detail)
    return f"{words} ({detail})" if detail else words
