"""langchain-mcp-adapters as a client of `kitbag serve`: over both transports.

    langchain_client.py KITBAG URL
"""

import asyncio
import os
import sys

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult

from expect import check


async def answer(_mcp_context, params, _context):
    known = {"name": "Ann", "color": "red"}
    return ElicitResult(action="accept", content={field: known[field] for field in params.requestedSchema["properties"]})


async def main():
    kitbag, url = sys.argv[1:]
    connections = {
        "stdio": {"transport": "stdio", "command": kitbag, "args": ["serve", "--log", "warn"], "env": dict(os.environ)},
        "http": {"transport": "streamable_http", "url": url},
    }
    client = MultiServerMCPClient(connections, callbacks=Callbacks(on_elicitation=answer))
    for name in connections:
        tools = {tool.name: tool for tool in await client.get_tools(server_name=name)}
        check(tools["test_simple_text"].description, "A text.")
        (text,) = await tools["test_simple_text"].ainvoke({})
        check(text["text"], "This is a simple text response for testing.")
        (text,) = await tools["test_input_required_result_multi_round"].ainvoke({})
        check(text["text"], "Ann likes red.")
        (document,) = await client.get_resources(name, uris=["kb://team/known"])
        check("Everybody knows this." in document.as_string(), True)
        print(f"{name}: all as expected")


asyncio.run(main())
