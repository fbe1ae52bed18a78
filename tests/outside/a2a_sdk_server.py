"""An A2A server made with the official Python a2a-sdk, speaking interactions/v1 on top of it.

What it proves: our connector's transport, data shapes, paging, errors and answers hold against a server nobody here
wrote. The sdk parses every request, keeps the tasks, pages the lists, runs the agent, makes every error body and
serves both bindings, streams and pushes. Ours is only what the sdk does not know: the interaction on a paused task,
and a send handler that checks state, context, parts, metadata and message id under a per-task lock BEFORE the sdk's
own handler sees the message (left alone, it queues a message to a working task, runs the agent again, and turns an
agent's refusal into a failed task).

What it cannot prove:
- interactions/v1 itself: those checks are written from the same page as our connector.
- -32008 (the sdk never enforces `required`), an echoed extensions header, metadata withheld from clients without it.
- refusals of unknown list filters: an unknown `status` value is ignored and the list comes unfiltered.
- A2A cases 27 (no history search: duplicates are known here; `--dedupe no` gives the plain sdk's behaviour), 34 and 35
  beyond 401/403, 37, 38, 43, 45, 54, 60 to 64: the sdk has no such switch. Sessions API: not served.

Callers: `Authorization: Bearer <application key>` alone is the watcher, who sees every task and may not answer; with
`Nylorun-Subject` and `Nylorun-Scopes: sessions:own` it is that subject; a JWT is its verified `sub`. A task belongs to
the subject it was opened for. `--foreign allowed`: any subject may read and answer it; `not-found`: nobody else.

    a2a_sdk_server.py --port 0 --app-key K [--jwks FILE_OR_URL --issuer I --audience A] [--foreign allowed|not-found]

prints `ready <port>` when it listens (A2A at /a2a, REST at /rest, control at /control) and ends when its standard
input does. Control, all JSON:

    POST /control/ask {owner, kind?, prompt?, detail?, interactionId?, contextId?, taskId?}  opens an interaction
    POST /control/end {taskId, state: completed|failed|rejected|canceled|working}            ends it from the runtime's side
    POST /control/answer {taskId, subject, approved | value}                                 the product answers itself
    GET  /control/dump  {interactions: {id: {…, approvedBy}}, tasks: {id: {owner, state}}, requests: […]}
"""

import argparse
import asyncio
import collections
import json
import logging
import os
import socket
import sys
import threading
import uuid

import httpx
import jwt
import uvicorn
from a2a.auth.user import User
from a2a.helpers import new_data_part, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    CancelTaskRequest,
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

URI = "https://docs.nylorun.com/a2a/interactions/v1"
WATCHER = "\0watcher"
TERMINAL = {
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_REJECTED,
    TaskState.TASK_STATE_CANCELED,
}


# --- Who calls ---------------------------------------------------------------------------------------------------


class Caller(User):
    def __init__(self, name, actor=None):
        self.name = name
        self.actor = actor

    @property
    def is_authenticated(self):
        return True

    @property
    def user_name(self):
        return self.name


class Refused(Exception):
    """An HTTP-level refusal in the runtime's own shape."""

    def __init__(self, status, code):
        self.status = status
        self.code = code


class Callers:
    """Bearer token to subject; a JWT is verified against the issuer's published keys."""

    def __init__(self, options):
        self.options = options
        self.keys = {}

    async def of(self, headers):
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused(401, "credential_required")
        subject, scopes = headers.get("nylorun-subject"), headers.get("nylorun-scopes")
        if token == self.options.app_key:
            if subject is None:
                return Caller(WATCHER)
            if scopes is None or "sessions:own" not in scopes.split():
                raise Refused(403, "scope_required")
            if not 1 <= len(subject) <= 200 or not all(32 <= ord(c) < 127 for c in subject):
                raise Refused(400, "subject_invalid")
            return Caller(subject)
        if token.count(".") != 2 or self.options.jwks is None:
            raise Refused(401, "credential_invalid")
        if subject is not None or scopes is not None:
            raise Refused(403, "key_role_mismatch")
        return await self.of_jwt(token)

    async def of_jwt(self, token):
        try:
            header = jwt.get_unverified_header(token)
            claims = jwt.decode(
                token,
                await self.key(header.get("kid")),
                algorithms=["ES256", "EdDSA"],
                issuer=self.options.issuer,
                audience=self.options.audience,
                leeway=30,
                options={
                    "require": ["exp", "iat", "sub", "jti", "iss", "aud"],
                    # The tests own the clock of the signing side.
                    "verify_exp": not self.options.any_time,
                    "verify_iat": not self.options.any_time,
                },
            )
        except jwt.ExpiredSignatureError as error:
            raise Refused(401, "token_expired") from error
        except jwt.PyJWTError as error:
            raise Refused(401, "credential_invalid") from error
        if claims["exp"] - claims["iat"] > 60 or not isinstance(claims["sub"], str):
            raise Refused(401, "credential_invalid")
        if "sessions:own" not in claims.get("scope", "").split():
            raise Refused(403, "scope_required")
        return Caller(claims["sub"], actor=claims.get("act", {}).get("sub"))

    async def key(self, kid):
        if kid not in self.keys:
            if "://" in self.options.jwks:
                async with httpx.AsyncClient(trust_env=False, timeout=5) as client:
                    published = (await client.get(self.options.jwks)).raise_for_status().json()
            else:
                with open(self.options.jwks, encoding="utf-8") as file:
                    published = json.load(file)
            self.keys = {key.key_id: key for key in jwt.PyJWKSet.from_dict(published).keys}
        if kid not in self.keys:
            raise jwt.InvalidTokenError("unknown kid")
        return self.keys[kid]


class Gate:
    """Refuses before the sdk sees the request; the agent card and the control API are open."""

    def __init__(self, app, callers):
        self.app = app
        self.callers = callers

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http" and scope["path"].startswith(("/a2a", "/rest")):
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            try:
                scope["caller"] = await self.callers.of(headers)
            except Refused as refused:
                body = {"status": "rejected", "code": refused.code, "message": refused.code.replace("_", " ")}
                more = {"WWW-Authenticate": "Bearer"} if refused.status == 401 else {}
                await JSONResponse(body, refused.status, more)(scope, receive, send)
                return
        await self.app(scope, receive, send)


class CallContexts(DefaultServerCallContextBuilder):
    def build_user(self, request):
        return request.scope["caller"]


# --- Who sees what -----------------------------------------------------------------------------------------------


class Tasks(InMemoryTaskStore):
    """The sdk's store twice: keyed by owner, and everything under one key for those who see all."""

    def __init__(self, options):
        super().__init__()
        self.all = InMemoryTaskStore(owner_resolver=lambda _: "all")
        self.options = options
        self.owners = {}

    def sees_all(self, context):
        return context.user.user_name == WATCHER or self.options.foreign == "allowed"

    async def save(self, task, context):
        owner = self.owners.setdefault(task.id, context.user.user_name)
        await self.all.save(task, context)
        await super().save(task, ServerCallContext(user=Caller(owner)))

    async def get(self, task_id, context):
        return await (self.all.get(task_id, context) if self.sees_all(context) else super().get(task_id, context))

    async def list(self, params, context):
        return await (self.all.list(params, context) if self.sees_all(context) else super().list(params, context))


# --- The agent, which does what it is told ------------------------------------------------------------------------


class Agent(AgentExecutor):
    def __init__(self):
        self.plans = {}  # message id -> what this run does: {"ask": interaction} or {"state": TaskState}

    async def execute(self, context, event_queue):
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            first = Task(id=context.task_id, context_id=context.context_id, history=[context.message])
            first.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_SUBMITTED))
            await event_queue.enqueue_event(first)
        plan = self.plans.pop(context.message.message_id, {"state": TaskState.TASK_STATE_WORKING})
        if "ask" not in plan:
            await updater.update_status(plan["state"])
            return
        asked = plan["ask"]
        interaction = {"interactionId": asked["interactionId"], "kind": asked["kind"], "prompt": asked["prompt"]}
        if asked.get("detail"):
            interaction["detail"] = asked["detail"]
        message = Message(
            message_id=asked["interactionId"],
            role=Role.ROLE_AGENT,
            task_id=context.task_id,
            context_id=context.context_id,
            parts=[new_text_part(asked["prompt"])],
            extensions=[URI],
            metadata={URI: interaction},
        )
        waits = asked["kind"] == "question"
        await (updater.requires_input(message) if waits else updater.requires_auth(message))

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


# --- The send handler that knows interactions/v1 -------------------------------------------------------------------


def violation(field, message):
    return InvalidParamsError(message, data={"errors": [{"field": field, "message": message}]})


def said(message):
    """One message as plain values: numbers as doubles, key order gone."""
    return MessageToDict(message)


class Handler(DefaultRequestHandler):
    def __init__(self, options, agent, store, **more):
        super().__init__(agent_executor=agent, task_store=store, **more)
        self.options = options
        self.agent = agent
        self.locks = collections.defaultdict(asyncio.Lock)
        self.open = {}  # task id -> interaction
        self.interactions = {}  # interaction id -> record
        self.answers = {}  # (task id, message id) -> the accepted message
        self.requests = []

    def note(self, operation, context, **more):
        caller = context.user
        subject = None if caller.user_name == WATCHER else caller.user_name
        extensions = sorted(context.requested_extensions)
        self.requests.append(
            {"operation": operation, "subject": subject, "actor": caller.actor, "extensions": extensions, **more}
        )

    async def on_get_task(self, params, context):
        self.note("GetTask", context, taskId=params.id)
        return await super().on_get_task(params, context)

    async def on_list_tasks(self, params, context):
        self.note("ListTasks", context, status=TaskState.Name(params.status), pageToken=params.page_token)
        return await super().on_list_tasks(params, context)

    async def on_cancel_task(self, params, context):
        self.note("CancelTask", context, taskId=params.id)
        async with self.locks[params.id]:
            task = await super().on_cancel_task(params, context)
            self.close(params.id, "canceled")
            return task

    async def on_message_send(self, params, context):
        # The lock is held until the agent has run, which is never long here: an answer and its effect are one step.
        async with self.locks[params.message.task_id]:
            replay = await self.admit(params, context)
            return replay if replay is not None else await super().on_message_send(params, context)

    async def on_message_send_stream(self, params, context):
        async with self.locks[params.message.task_id]:
            replay = await self.admit(params, context)
        if replay is not None:
            yield replay
            return
        async for event in super().on_message_send_stream(params, context):
            yield event

    async def admit(self, params, context):
        """Refuses, or returns the task a repeated message already had, or records the answer and returns None."""
        validate_proto_required_fields(params)
        message = params.message
        self.note("SendMessage", context, taskId=message.task_id, messageId=message.message_id, message=said(message))
        if context.user.user_name == WATCHER:
            raise InvalidParamsError("a message needs a subject")
        if message.role != Role.ROLE_USER:
            raise violation("message.role", "a client speaks as the user")
        if not 1 <= len(message.message_id) <= 200 or not all(32 < ord(c) < 127 for c in message.message_id):
            raise violation("message.messageId", "1 to 200 visible ASCII characters")
        if not message.task_id:
            text = next((part.text for part in message.parts if part.HasField("text")), "Go on?")
            return await self.run(context.user.user_name, message, {"prompt": text})
        task = await self.task_store.get(message.task_id, context)
        if task is None:
            raise TaskNotFoundError
        earlier = self.answers.get((task.id, message.message_id))
        if earlier is not None and self.options.dedupe == "yes":
            if earlier != said(message):
                raise violation("message.messageId", "this message id was used with other content")
            return task
        if message.context_id and message.context_id != task.context_id:
            raise violation("message.contextId", "not the context of this task")
        interaction = self.open.get(task.id)
        if task.status.state in TERMINAL or interaction is None:
            raise UnsupportedOperationError("the task waits for nothing")
        decision = self.decision(message, interaction)
        self.answers[(task.id, message.message_id)] = said(message)
        self.close(task.id, "answered")
        caller = context.user
        interaction.update(
            decision, approvedBy=caller.user_name, actor=caller.actor, messageId=message.message_id
        )
        return None

    def decision(self, message, interaction):
        """The answer in the message, or a refusal that changes nothing."""
        kinds = {part.WhichOneof("content") for part in message.parts}
        if kinds - {"text", "data"} or len(kinds) > 1:
            raise ContentTypeNotSupportedError
        metadata = said(message).get("metadata", {}).get(URI, {})
        parts = [said(part) for part in message.parts]
        value = metadata.get("value", metadata.get("approved"))
        if metadata:
            if "interactionId" not in metadata:
                raise violation("message.metadata", "interactionId is missing")
            if metadata["interactionId"] != interaction["interactionId"]:
                raise UnsupportedOperationError("another interaction is open")
        elif interaction["kind"] != "question" and kinds == {"text"}:
            raise UnsupportedOperationError("text answers questions only")
        if value is None:
            value = next((part.get("text", part.get("data")) for part in parts), None)
            if interaction["kind"] == "approval" and isinstance(value, dict):
                value = value.get("approved")
        if interaction["kind"] == "approval":
            if not isinstance(value, bool):
                raise UnsupportedOperationError("an approval is answered by approved: true or false")
            return {"approved": value, "effect": None if value else "tool.denied"}
        if interaction["kind"] == "connection":
            return {"connected": value is True or value == {"connected": True}}
        if value is None or value == "":
            raise violation("message.parts", "an answer is missing")
        return {"value": value}

    # What the control API does, as the runtime itself.

    def plan(self, message_id, asked):
        interaction = {
            "interactionId": asked.get("interactionId") or f"eff_{uuid.uuid4().hex[:8]}",
            "kind": asked.get("kind", "approval"),
            "prompt": asked.get("prompt", "Approve pager / close_incident?"),
            "detail": asked.get("detail"),
            "approvedBy": None,
            "state": "open",
        }
        self.agent.plans[message_id] = {"ask": interaction}
        return interaction

    def close(self, task_id, state):
        interaction = self.open.pop(task_id, None)
        if interaction is not None:
            interaction["state"] = state

    async def run(self, owner, message, what):
        """One run of the agent: it ends in a state, or asks."""
        interaction = None
        if "state" in what:
            self.agent.plans[message.message_id] = what
        else:
            interaction = self.plan(message.message_id, what)
        request = SendMessageRequest(message=message, configuration=SendMessageConfiguration(history_length=0))
        context = ServerCallContext(user=Caller(owner))
        task = await super().on_message_send(request, context)
        if interaction is not None:
            interaction.update(taskId=task.id, contextId=task.context_id, owner=owner)
            self.interactions[interaction["interactionId"]] = interaction
            self.open[task.id] = interaction
        return task

    @staticmethod
    def of_the_runtime(task_id="", context_id=""):
        parts = [new_text_part("Go on.")]
        message_id = f"runtime:{uuid.uuid4()}"
        return Message(
            message_id=message_id, role=Role.ROLE_USER, parts=parts, task_id=task_id, context_id=context_id
        )

    async def control_ask(self, request):
        asked = await request.json()
        task_id = asked.get("taskId")
        if task_id is None:
            message = self.of_the_runtime(context_id=asked.get("contextId", ""))
            task = await self.run(asked["owner"], message, asked)
        else:
            async with self.locks[task_id]:
                self.close(task_id, "superseded")
                message = self.of_the_runtime(task_id, (await self.stored(task_id)).context_id)
                task = await self.run(self.task_store.owners[task_id], message, asked)
        return JSONResponse(self.open[task.id])

    async def control_end(self, request):
        asked = await request.json()
        task_id, state = asked["taskId"], asked["state"]
        context = ServerCallContext(user=Caller(self.task_store.owners[task_id]))
        async with self.locks[task_id]:
            if state == "canceled":
                await super().on_cancel_task(CancelTaskRequest(id=task_id), context)
            else:
                wanted = TaskState.Value(f"TASK_STATE_{state.upper()}")
                message = self.of_the_runtime(task_id, (await self.stored(task_id)).context_id)
                await self.run(context.user.user_name, message, {"state": wanted})
            self.close(task_id, state)
            return JSONResponse({"state": TaskState.Name((await self.stored(task_id)).status.state)})

    async def control_answer(self, request):
        asked = await request.json()
        interaction = self.open[asked["taskId"]]
        answer = {name: asked[name] for name in ("approved", "value") if name in asked}
        message = Message(
            message_id=f"answer:{interaction['interactionId']}",
            role=Role.ROLE_USER,
            task_id=asked["taskId"],
            context_id=interaction["contextId"],
            extensions=[URI],
            parts=[new_data_part(answer)],
            metadata={URI: {"interactionId": interaction["interactionId"], **answer}},
        )
        send = SendMessageRequest(message=message, configuration=SendMessageConfiguration(return_immediately=True))
        task = await self.on_message_send(send, ServerCallContext(user=Caller(asked["subject"])))
        return JSONResponse({"state": TaskState.Name(task.status.state)})

    async def control_dump(self, _request):
        tasks = {}
        for task_id, owner in self.task_store.owners.items():
            task = await self.stored(task_id)
            tasks[task_id] = {
                "owner": owner,
                "contextId": task.context_id,
                "state": TaskState.Name(task.status.state),
                "history": [said(message) for message in task.history],
            }
        return JSONResponse({"interactions": self.interactions, "tasks": tasks, "requests": self.requests})

    async def stored(self, task_id):
        return await self.task_store.all.get(task_id, ServerCallContext(user=Caller(WATCHER)))


# --- Putting it together -------------------------------------------------------------------------------------------


def card(base, bindings=("JSONRPC", "HTTP+JSON")):
    interfaces = {"JSONRPC": "a2a", "HTTP+JSON": "rest"}
    return AgentCard(
        name="Release agent",
        description="Ships builds; asks before it does.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=f"{base}/{interfaces[binding]}", protocol_binding=binding, protocol_version="1.0")
            for binding in bindings
        ],
        capabilities=AgentCapabilities(
            streaming=True,
            push_notifications=True,
            extensions=[AgentExtension(uri=URI, description="human decisions", required=False)],
        ),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="ship", name="Ship", description="Ships a build", tags=["ci"])],
    )


def application(options, base):
    agent, store, configs = Agent(), Tasks(options), InMemoryPushNotificationConfigStore()
    named = card(base, options.binding or ("JSONRPC", "HTTP+JSON"))
    client = httpx.AsyncClient(trust_env=False, timeout=5)
    handler = Handler(
        options,
        agent,
        store,
        agent_card=named,
        push_config_store=configs,
        push_sender=BasePushNotificationSender(client, configs),
    )
    contexts = CallContexts()
    routes = [
        Route("/control/ask", handler.control_ask, methods=["POST"]),
        Route("/control/end", handler.control_end, methods=["POST"]),
        Route("/control/answer", handler.control_answer, methods=["POST"]),
        Route("/control/dump", handler.control_dump, methods=["GET"]),
        *create_agent_card_routes(named, cache_control="public, max-age=60"),
        *create_jsonrpc_routes(handler, "/a2a", context_builder=contexts),
        # Last: with a tenant in the path they would take every address.
        *create_rest_routes(handler, context_builder=contexts, path_prefix="/rest"),
    ]
    return Gate(Starlette(routes=routes), Callers(options))


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        print(f"ready {sockets[0].getsockname()[1]}", flush=True)


def end_with_standard_input():
    sys.stdin.buffer.read()
    os._exit(0)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--app-key", required=True)
    options.add_argument("--jwks")
    options.add_argument("--issuer")
    options.add_argument("--audience")
    options.add_argument("--any-time", action="store_true", help="do not hold a JWT's times against this machine's clock")
    options.add_argument("--foreign", choices=["allowed", "not-found"], default="allowed")
    options.add_argument("--binding", action="append", choices=["JSONRPC", "HTTP+JSON"], help="what the card names; default both")
    options.add_argument("--dedupe", choices=["yes", "no"], default="yes")
    options = options.parse_args()
    logging.getLogger("a2a").setLevel(logging.CRITICAL)  # refused requests are what the tests ask for
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", options.port))
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    threading.Thread(target=end_with_standard_input, daemon=True).start()
    config = uvicorn.Config(application(options, base), log_level="warning", access_log=False)
    Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
