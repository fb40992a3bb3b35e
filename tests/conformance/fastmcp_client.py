"""fastmcp as a client of `kitbag serve`: in both eras, over both transports.

    fastmcp_client.py KITBAG URL
"""

import asyncio
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

from expect import check

KITBAG, URL = sys.argv[1:]


async def answer(_message, response_type, params, _context):
    known = {"name": "Ann", "color": "red"}
    return response_type(**{field: known[field] for field in params.requested_schema["properties"]})


async def session(transport, mode):
    async with Client(transport, mode=mode, elicitation_handler=answer) as client:
        tools = {tool.name: tool.description for tool in await client.list_tools()}
        check(tools["test_simple_text"], "A text.")
        result = await client.call_tool("test_simple_text", {})
        check(result.content[0].text, "This is a simple text response for testing.")
        result = await client.call_tool("test_input_required_result_multi_round", {})
        check(result.content[0].text, "Ann likes red.")
        check("kb://team/known" in {str(resource.uri) for resource in await client.list_resources()}, True)
        (content,) = await client.read_resource("kb://team/known")
        check("Everybody knows this." in content.text, True)


async def main():
    for mode, era in (("auto", "2026"), ("legacy", "2025")):
        stdio = StdioTransport(KITBAG, ["serve", "--log", "warn"], env=dict(os.environ), keep_alive=False)
        for name, transport in (("stdio", stdio), ("http", StreamableHttpTransport(URL))):
            await session(transport, mode)
            print(f"{name}-{era}: all as expected")


asyncio.run(main())
