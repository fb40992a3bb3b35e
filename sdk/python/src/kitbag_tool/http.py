"""HTTP requests, to the servers that the grant of `http` names."""

from __future__ import annotations

import json as _json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from . import state
from .bindings import Err, http_handler, http_types, reason_of, streams
from .outcome import ToolError

#: The largest part that a stream of WASI accepts at once.
PART = 4096
#: Errors of the network, after which the same request may succeed.
TRANSIENT = ("Timeout", "Refused", "Terminated", "Incomplete", "Unavailable", "LimitReached")


@dataclass(frozen=True)
class Response:
    """The response to a request."""

    status: int
    body: bytes = b""
    #: The headers, with names in lower case.
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""

    @property
    def ok(self) -> bool:
        """True if the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as text in UTF-8; malformed bytes are replaced."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """Parses the body. Raises `ToolError` if it is not JSON."""
        try:
            return _json.loads(self.body)
        except ValueError as error:
            raise ToolError(f"`{self.url}` is not JSON: {error}") from None

    def check(self) -> Response:
        """Returns the response if it is `ok`, and raises `ToolError` otherwise."""
        if self.ok:
            return self
        transient = self.status == 429 or self.status >= 500
        raise ToolError(f"`{self.url}` has status {self.status}", transient=transient)


def get(url: str, *, headers: dict[str, str] | None = None, timeout: float | None = None) -> Response:
    """Makes a GET request. Any status is a response; see `Response.check`."""
    return request("GET", url, headers=headers, timeout=timeout)


def post(
    url: str,
    *,
    json: Any = None,
    body: bytes | str | None = None,
    headers: dict[str, str] | None = None,
    timeout: float | None = None,
) -> Response:
    """Makes a POST request with a body, or with a value that is sent as JSON."""
    return request("POST", url, json=json, body=body, headers=headers, timeout=timeout)


def request(
    method: str,
    url: str,
    *,
    json: Any = None,
    body: bytes | str | None = None,
    headers: dict[str, str] | None = None,
    timeout: float | None = None,
) -> Response:
    """Makes a request. `timeout` is in seconds; the time limit of the call applies anyway.

    Raises `ToolError` if there is no response, for example because the grant of `http` does not
    have the URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ToolError(f"`{url}` is not a URL that begins with `https://` or `http://`")
    sent = {name.lower(): value for name, value in (headers or {}).items()}
    if json is not None:
        body = _json.dumps(json)
        sent.setdefault("content-type", "application/json")
    data = body.encode() if isinstance(body, str) else body
    if data is not None:
        sent.setdefault("content-length", str(len(data)))
    if http_types is None:
        return _recorded(url)
    try:
        return _send(method.upper(), url, sent, data, timeout)
    except Err as error:
        code = type(error.value).__name__.rpartition("_")[2]
        if code == "HttpRequestDenied":
            reason = "the tool has no grant of `http` for it"
        else:
            reason = reason_of(error.value)
        transient = any(word in code for word in TRANSIENT)
        raise ToolError(f"`{url}` cannot be requested: {reason}", transient=transient) from None


def _send(
    method: str, url: str, headers: dict[str, str], data: bytes | None, timeout: float | None
) -> Response:
    parts = urlsplit(url)
    fields = http_types.Fields.from_list([(name, value.encode()) for name, value in headers.items()])
    outgoing = http_types.OutgoingRequest(fields)
    known = getattr(http_types, f"Method_{method.capitalize()}", None)
    outgoing.set_method(known() if known else http_types.Method_Other(method))
    https = parts.scheme == "https"
    outgoing.set_scheme(http_types.Scheme_Https() if https else http_types.Scheme_Http())
    outgoing.set_authority(parts.netloc)
    outgoing.set_path_with_query((parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
    options = None
    if timeout is not None:
        options = http_types.RequestOptions()
        nanoseconds = int(timeout * 1e9)
        options.set_connect_timeout(nanoseconds)
        options.set_first_byte_timeout(nanoseconds)
        options.set_between_bytes_timeout(nanoseconds)
    sending = outgoing.body()
    future = http_handler.handle(outgoing, options)
    if data:
        with sending.write() as stream:
            for start in range(0, len(data), PART):
                stream.blocking_write_and_flush(data[start : start + PART])
    http_types.OutgoingBody.finish(sending, None)
    with future.subscribe() as ready:
        ready.block()
    result = future.get().value
    if isinstance(result, Err):
        raise result
    incoming = result.value
    received = {name.lower(): value.decode("latin-1") for name, value in incoming.headers().entries()}
    body = bytearray()
    with incoming.consume() as content, content.stream() as stream:
        try:
            while True:
                body += stream.blocking_read(65536)
        except Err as error:
            if not isinstance(error.value, streams.StreamError_Closed):
                raise ToolError(f"the body of `{url}` is incomplete", transient=True) from None
    return Response(incoming.status(), bytes(body), received, url)


def _recorded(url: str) -> Response:
    response = state.current.responses.get(url)
    if response is None:
        raise ToolError(f"`{url}` has no recorded response: pass `responses` to `testing.call`")
    return Response(response.status, response.body, response.headers, url)
