"""Prompts, which a person chooses, and resources, which have a URI. Both are served over MCP."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

from . import report, world
from .schema import arguments_schema, split_docstring

Function = TypeVar("Function", bound=Callable[..., Any])

#: A variable in the URI of a template.
VARIABLE = re.compile(r"\{(\+?)(\w+)\}")


@dataclass(frozen=True)
class Prompt:
    """A function that is a prompt."""

    function: Callable[..., Any]
    description: dict[str, Any]


@dataclass(frozen=True)
class Resource:
    """A function that returns the content of a resource, or of all resources of a template."""

    function: Callable[..., Any]
    description: dict[str, Any]
    pattern: re.Pattern[str]

    def read(self, uri: str) -> Any:
        """Returns the content. `None` if another resource has this URI."""
        found = self.pattern.fullmatch(uri)
        if found is None:
            return None
        content = self.function(**{k: unquote(value) for k, value in found.groupdict().items()})
        if isinstance(content, bytes):
            report.document(uri, content, self.description.get("mimeType"))
            return ""
        return content


#: The prompts of the component, by name.
prompts: dict[str, Prompt] = {}
#: The resources of the component, by URI.
resources: dict[str, Resource] = {}


def prompt(
    name: str | None = None, *, title: str | None = None, description: str | None = None
) -> Callable[[Function], Function]:
    """Makes a function a prompt of the component. It returns the text of a message of the user.

    Its name, description and arguments come from the function, as for `tool`. Arguments are
    strings.
    """

    def register(function: Function) -> Function:
        own = name or function.__name__
        described: dict[str, Any] = {"name": own, **_said(function, title, description)}
        if arguments := _strings(function):
            described["arguments"] = arguments
        prompts[own] = Prompt(function, described)
        return world.exported(function)

    return register


def resource(
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
) -> Callable[[Function], Function]:
    """Makes a function a resource of the component. It returns the content: text or bytes.

    A URI with variables, such as `notes://{name}`, is a template. The function has the variables as
    arguments. `{name}` is text without `/`, `?` and `#`; `{+path}` is any text.
    """

    def register(function: Function) -> Function:
        names = [match[2] for match in VARIABLE.finditer(uri)]
        if sorted(argument["name"] for argument in _strings(function)) != sorted(names):
            raise TypeError(f"`{function.__name__}` must have the variables of `{uri}` as arguments")
        described = {
            "uriTemplate" if names else "uri": uri,
            "name": name or function.__name__,
            **_said(function, title, description),
        }
        if mime_type is not None:
            described["mimeType"] = mime_type
        resources[uri] = Resource(function, described, _pattern(uri))
        return world.exported(function)

    return register


def described() -> dict[str, list[dict[str, Any]]]:
    """Returns the prompts and resources in the form of the contract, without empty lists."""
    found = [resource.description for resource in resources.values()]
    lists = {
        "prompts": [prompt.description for prompt in prompts.values()],
        "resources": [it for it in found if "uri" in it],
        "resourceTemplates": [it for it in found if "uriTemplate" in it],
    }
    return {key: items for key, items in lists.items() if items}


def read(uri: str) -> Any:
    """Returns the content of a resource, or `None` if there is no such resource."""
    contents = (resource.read(uri) for resource in resources.values())
    return next((content for content in contents if content is not None), None)


def _said(function: Any, title: str | None, description: str | None) -> dict[str, str]:
    text, _ = split_docstring(inspect.getdoc(function) or "")
    said = {"title": title, "description": description or text or None}
    return {key: value for key, value in said.items() if value is not None}


def _strings(function: Any) -> list[dict[str, Any]]:
    """Returns the arguments in the form of the contract."""
    schema = arguments_schema(function)
    arguments = []
    for name, property in schema["properties"].items():
        if property.get("type") != "string":
            raise TypeError(f"`{name}` of `{function.__name__}` must be a string")
        argument = {"name": name, "required": name in schema.get("required", ())}
        if "description" in property:
            argument["description"] = property["description"]
        arguments.append(argument)
    return arguments


def _pattern(uri: str) -> re.Pattern[str]:
    pattern, end = "", 0
    for match in VARIABLE.finditer(uri):
        any_text = ".+" if match[1] else "[^/?#]+"
        pattern += f"{re.escape(uri[end : match.start()])}(?P<{match[2]}>{any_text})"
        end = match.end()
    return re.compile(pattern + re.escape(uri[end:]), re.DOTALL)
