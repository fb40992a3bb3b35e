"""A tool that uses all functions of the package."""

from pathlib import Path
from typing import Literal

from kitbag_tool import ToolError, ask, config, http, prompt, report, resource, storage, tool, tools


@tool(grants={"storage": True})
def everything(
    action: Literal["ask", "config", "content", "files", "post", "put", "slow", "storage", "tools"],
    url: str = "",
) -> str:
    """Use the functions of the package."""
    match action:
        case "ask":
            colour = ask.select("colour", "Which?", ["red", ("blue", "Blue")], category="a:b")
            more = ask.multi_select("more", "Which?", ["a", "b"])
            named = ask.form("name", "Who?", [{"id": "first", "type": "text"}])
            count, ratio = ask.integer("count", "How many?"), ask.number("ratio", "How much?")
            sure = ask.boolean("sure", "Sure?", suggest=True)
            return f"{colour} {','.join(more)} {named['first']} {count} {ratio} {int(sure)}"
        case "config":
            names = ",".join(sorted(config.all()))
            return f"[{names}] {config.get('none', 'absent')}"
        case "content":
            report.log("log", "warning")
            report.progress(1, 2, "half")
            report.image(b"\x89PNG")
            report.audio(b"RIFF", "audio/wav")
            report.document("file:///a.txt", "text", "text/plain")
            report.document("file:///a.bin", b"\0\1")
            report.link("https://example.com/", "Example", title="An example", size=3)
            try:
                report.image(b"", "no type")
            except ToolError:
                return "refused"
        case "files":
            Path("new.txt").write_text("ä")
            entries = sorted(p.name + ("/" if p.is_dir() else "") for p in Path().iterdir())
            return f"{','.join(entries)} {len(Path('new.txt').read_bytes())}"
        case "post":
            response = http.post(url, json={"a": 1}, headers={"X-Own": "own"})
            return f"{response.status} {response.text}"
        case "put":
            response = http.request("put", url, body="x" * 10000)
            return f"{response.status} {response.text}"
        case "slow":
            return http.get(url, timeout=0.2).text
        case "storage":
            store = storage.open()
            store.set("b", b"\0")
            store.set("a", "one")
            had = "a" in store
            store.delete("b")
            return f"{(store.get('a') or b'').decode()} {had} {'b' in store} {','.join(store.keys())}"
        case "tools":
            [listed] = tools.list()
            found = tools.find("sum")
            started = [tools.start("sum", expression=f"{n}+1") for n in (1, 2)]
            answers = [tools.call("sum", expression="1+0"), *(one.finish() for one in started)]
            sums = " ".join(answer.structured["result"] for answer in answers)
            try:
                tools.call("sum", expression="1+")
            except ToolError:
                return f"{listed.alias} {found is not None} {tools.find('none')} {sums}"
    return "unreachable"


@prompt(title="Shorten a text")
def shorten(words: str, style: str | None = None) -> str:
    """Shorten a text.

    Args:
        words: The number of words
    """
    return f"Shorten it to {words} words. {style or ''}".rstrip()


@resource("everything://text/{name}", mime_type="text/plain")
def text(name: str) -> str | None:
    return None if name == "none" else f"text of {name}"


@resource("everything://bytes", mime_type="application/octet-stream")
def data() -> bytes:
    return b"\0\1"
