"""The generated bindings of the contract, which exist only while a component is built and run.

componentize-py includes only modules that are imported while the component is built, so all
bindings are imported here.
"""

from typing import Any

componentize: Any = None
types: Any = None
host: Any = None
tools: Any = None
http_types: Any = None
http_handler: Any = None
streams: Any = None
config: Any = None
keyvalue: Any = None

try:
    import componentize_py_types as componentize
    from wit_world.imports import (
        host,
        outgoing_handler as http_handler,
        streams,
        tools,
        kitbag_tool_types as types,
        wasi_config_store as config,
        wasi_http_types as http_types,
        wasi_keyvalue_store as keyvalue,
    )
except ImportError:
    pass

#: True in a component, false in a tool's own tests.
IN_COMPONENT = types is not None


class NeverRaised(Exception):
    """Takes the place of the exception of bindings outside a component."""


#: The exception of a result that is an error; `value` is the error.
Err: Any = componentize.Err if IN_COMPONENT else NeverRaised
