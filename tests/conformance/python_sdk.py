"""The Python SDK as a client of `kitbag serve`: in both eras, over both transports.

Every check compares content, so that a missing tool cannot pass.
"""

import asyncio
import os
import pathlib
import sys
import warnings

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import ElicitResult

from expect import check

KITBAG, URL = sys.argv[1:]
NOTES = pathlib.Path("notes")
PATIENCE = 60


def texts(result):
    return [block.text for block in result.content if block.type == "text"]


async def answer(_context, params):
    """A person who answers every question."""
    known = {"name": "Ann", "color": "red", "context": "a test", "sure": True}
    fields = params.requested_schema["properties"]
    return ElicitResult(action="accept", content={field: known[field] for field in fields})


async def lists(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    check(tools["test_simple_text"].description, "A text.")
    check(tools["json_schema_2020_12_tool"].input_schema["additionalProperties"], False)
    prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    arguments = prompts["test_prompt_with_arguments"].arguments
    check([(argument.name, argument.required) for argument in arguments], [("arg1", True), ("arg2", True)])
    resources = {resource.uri for resource in (await client.list_resources()).resources}
    check("test://static-binary" in resources and "kb://team/known" in resources, True)
    templates = (await client.list_resource_templates()).resource_templates
    check("test://template/{id}/data" in {template.uri_template for template in templates}, True)


async def calls(client):
    result = await client.call_tool("test_simple_text", {})
    check(texts(result), ["This is a simple text response for testing."])
    result = await client.call_tool("test_multiple_content_types", {})
    check([block.type for block in result.content], ["text", "image", "resource"])
    result = await client.call_tool("test_error_handling", {})
    check((result.is_error, texts(result)), (True, ["This tool intentionally returns an error for testing"]))
    result = await client.read_resource("test://template/7/data")
    check('"id":"7"' in result.contents[0].text, True)
    result = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
    check(result.messages[0].content.text, "Prompt with arguments: arg1='a', arg2='b'")
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("a tool that there is not was called")
    except MCPError as error:
        check(error.error.code, -32602)


async def answers(client):
    result = await client.call_tool("test_input_required_result_multi_round", {})
    check(texts(result), ["Ann likes red."])
    result = await client.get_prompt("test_input_required_result_prompt")
    check(result.messages[0].content.text, "Use this context: a test")
    result = await client.read_resource("test://with-question")
    check(result.contents[0].text, "The answer is true.")


async def progress(client):
    steps = []

    async def step(done, total, _message):
        steps.append((done, total))

    await client.call_tool("test_tool_with_progress", {}, progress_callback=step)
    check(steps, [(0, 100), (50, 100), (100, 100)])


async def cancel(client):
    """Cancels a running call; the server continues."""
    call = asyncio.ensure_future(client.call_tool("test_tool_with_progress", {}))
    await asyncio.sleep(0.03)
    call.cancel()
    try:
        await call
        raise AssertionError("a call that was given up was answered")
    except asyncio.CancelledError:
        pass
    check(texts(await client.call_tool("test_simple_text", {}))[0][:14], "This is a simp")


async def reload(client, name):
    """A new document is announced, listed and read."""
    path = NOTES / f"{name}.md"
    uri = f"kb://team/{name}"

    async def write():
        path.write_text("Brand new.\n")
        while uri not in {r.uri for r in (await client.list_resources(cache_mode="bypass")).resources}:
            await asyncio.sleep(0.02)

    if client.protocol_version >= "2026":
        async with client.listen(resources_list_changed=True) as changes:
            await write()
            async for _ in changes:
                break
    else:
        await client.subscribe_resource("kb://team/known")
        await write()
    check("Brand new." in (await client.read_resource(uri)).contents[0].text, True)


async def session(name, server, mode):
    heard = []

    async def hear(message):
        heard.append(getattr(message, "method", type(message).__name__))

    async with Client(server, mode=mode, elicitation_callback=answer, message_handler=hear) as client:
        for part in (lists, calls, answers, progress, cancel):
            await part(client)
        await reload(client, name)
        if mode == "legacy":
            with anyio.fail_after(PATIENCE):
                while "notifications/resources/updated" not in heard:
                    await asyncio.sleep(0.02)
        print(f"{name}: {client.protocol_version}, all as expected")


async def main():
    for mode, era in (("auto", "2026"), ("legacy", "2025")):
        stdio = StdioServerParameters(command=KITBAG, args=["serve", "--log", "warn"], env=ENVIRONMENT)
        for transport, server in (("stdio", stdio), ("http", URL)):
            with anyio.fail_after(PATIENCE):
                await session(f"{transport}-{era}", server, mode)


if __name__ == "__main__":
    # The newer era deprecates the older one.
    warnings.simplefilter("ignore")
    ENVIRONMENT = {name: os.environ[name] for name in ("HOME", "KITBAG_CACHE_DIR", "KITBAG_TRUST_WORKSPACE")}
    asyncio.run(main())
