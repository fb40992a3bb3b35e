"""The tool `my_tool`. Replace the function by your own."""

from pathlib import Path

from kitbag_tool import ToolError, ask, http, tool


@tool(grants={"http": ["https://example.com/**"]})
def my_tool(path: str | None = None, url: str | None = None) -> str:
    """Count the words of a text file, with the title of a JSON document of the web.

    Args:
        path: File, relative to the workspace
        url: JSON document that has a `title`
    """
    # Without an answer the run ends here. It starts again with the answer.
    path = path or ask.text("path", "Which file?")
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise ToolError(f"`{path}` cannot be read: {error.strerror}") from error
    count = f"{path} has {len(text.split())} words"
    if url is None:
        return count
    return f"{http.get(url).check().json()['title']}: {count}"
