"""The official a2a-sdk client as judge of an A2A server: ours in the sandbox, or the sdk's own.

    a2a_sdk_client.py --url http://127.0.0.1:PORT [--binding JSONRPC|HTTP+JSON]

reads the agent card at the address, then one JSON object a line, and prints one for each: {"result": …}, or
{"error": {"type": the sdk's exception, "message": …}}.

    {"do": "card"} {"do": "list", "status": "TASK_STATE_AUTH_REQUIRED", "pageSize": 10, "pageToken": ""}
    {"do": "get", "taskId": T} {"do": "cancel", "taskId": T}
    {"do": "send", "message": {… as on the wire …}, "returnImmediately": true}
    {"do": "subscribe", "taskId": T, "events": 1}     the first events of the stream

Every request may carry "headers". A server error is an answer; anything else (an unreadable line, a refused
connection) ends the program.
"""

import argparse
import asyncio
import json
import logging
import sys

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.client.errors import A2AClientError
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseDict


async def ask(client, card, asked):
    context = ClientCallContext(service_parameters=asked.get("headers", {}))
    match asked["do"]:
        case "card":
            return MessageToDict(card)
        case "list":
            request = ListTasksRequest(page_token=asked.get("pageToken", ""))
            if "status" in asked:
                request.status = TaskState.Value(asked["status"])
            if "pageSize" in asked:
                request.page_size = asked["pageSize"]
            return MessageToDict(await client.list_tasks(request, context=context))
        case "get":
            return MessageToDict(await client.get_task(GetTaskRequest(id=asked["taskId"]), context=context))
        case "cancel":
            return MessageToDict(await client.cancel_task(CancelTaskRequest(id=asked["taskId"]), context=context))
        case "send":
            how = SendMessageConfiguration(return_immediately=asked.get("returnImmediately", True))
            request = SendMessageRequest(message=ParseDict(asked["message"], Message()), configuration=how)
            return [MessageToDict(event) async for event in client.send_message(request, context=context)]
        case "subscribe":
            events = []
            async for event in client.subscribe(SubscribeToTaskRequest(id=asked["taskId"]), context=context):
                events.append(MessageToDict(event))
                if len(events) == asked.get("events", 1):
                    break
            return events
        case other:
            raise ValueError(f"unknown request {other!r}")


async def main():
    logging.disable()  # an error of the server is a result here
    options = argparse.ArgumentParser()
    options.add_argument("--url", required=True)
    options.add_argument("--binding", choices=["JSONRPC", "HTTP+JSON"], default="JSONRPC")
    options = options.parse_args()
    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        card = await A2ACardResolver(http, options.url).get_agent_card()
        common = {"httpx_client": http, "supported_protocol_bindings": [options.binding], "use_client_preference": True}
        client = ClientFactory(ClientConfig(streaming=False, **common)).create(card)
        streams = ClientFactory(ClientConfig(streaming=True, **common)).create(card)
        for line in sys.stdin:
            try:
                asked = json.loads(line)
                judge = streams if asked["do"] == "subscribe" else client
                said = {"result": await ask(judge, card, asked)}
            except (A2AError, A2AClientError) as error:
                said = {"error": {"type": type(error).__name__, "message": str(error)}}
            print(json.dumps(said), flush=True)


asyncio.run(main())
