"""Write tools for kitbag in Python.

```python
from kitbag_tool import ask, tool


@tool
def greet(name: str | None = None) -> str:
    \"\"\"Greet a person.

    Args:
        name: Name of the person
    \"\"\"
    return f"Hello, {name or ask.text('name', 'Who?')}!"
```
"""

from . import ask, config, http, report, storage, tools
from .items import prompt, resource
from .outcome import ToolError
from .registry import tool

__all__ = [
    "ToolError",
    "ask",
    "config",
    "http",
    "prompt",
    "report",
    "resource",
    "storage",
    "tool",
    "tools",
]
