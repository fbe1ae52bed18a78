"""Asks a2a_sdk_server.py everything its head comment promises, as a stranger would: over JSON-RPC, with tokens made here.

Prints `as promised`; anything else is a failure.
"""

import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

URI = "https://docs.nylorun.com/a2a/interactions/v1"
SERVER = pathlib.Path(__file__).with_name("a2a_sdk_server.py")
OWNER, DANA = "owner@example.com", "dana@example.com"

KEYS = {"es": (ec.generate_private_key(ec.SECP256R1()), "ES256"), "ed": (ed25519.Ed25519PrivateKey.generate(), "EdDSA")}


def published():
    keys = []
    for kid, (key, algorithm) in KEYS.items():
        maker = jwt.algorithms.ECAlgorithm if algorithm == "ES256" else jwt.algorithms.OKPAlgorithm
        keys.append({**json.loads(maker.to_jwk(key.public_key())), "kid": kid, "alg": algorithm, "use": "sig"})
    return {"keys": keys}


def bearer(subject, kid="es", **other):
    now = int(time.time())
    claims = {"iss": "https://countersign", "aud": "prod", "sub": subject, "act": {"sub": "countersign"}}
    claims |= {"scope": "sessions:own", "iat": now, "exp": now + 60, "jti": str(time.time_ns()), **other}
    key, algorithm = KEYS[kid]
    return {"Authorization": "Bearer " + jwt.encode(claims, key, algorithm=algorithm, headers={"kid": kid})}


class Server:
    def __init__(self, *more):
        jwks = tempfile.NamedTemporaryFile("w", suffix=".json")
        json.dump(published(), jwks)
        jwks.flush()
        arguments = ["--port", "0", "--app-key", "K", "--jwks", jwks.name, *more]
        arguments += ["--issuer", "https://countersign", "--audience", "prod"]
        command = [sys.executable, str(SERVER), *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.jwks = jwks
        base = f"http://127.0.0.1:{self.process.stdout.readline().split()[1]}"
        self.http = httpx.Client(base_url=base, trust_env=False, timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(10) == 0, "it ends with its standard input"

    def raw(self, method, params, headers):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.http.post("/a2a", json=body, headers={"A2A-Version": "1.0", **headers})

    def call(self, method, params, headers):
        said = self.raw(method, params, headers).json()
        return said["error"]["code"] if "error" in said else said["result"]

    def control(self, what, **asked):
        return self.http.post(f"/control/{what}", json=asked).raise_for_status().json()

    def dump(self):
        return self.http.get("/control/dump").raise_for_status().json()

    def answer(self, open_, message_id, headers, approved=True, **other):
        answer = {"approved": approved}
        message = {"role": "ROLE_USER", "messageId": message_id, "taskId": open_["taskId"], "contextId": open_["contextId"]}
        message |= {"extensions": [URI], "parts": [{"data": answer}]}
        message |= {"metadata": {URI: {"interactionId": open_["interactionId"], **answer}}, **other}
        said = self.call("SendMessage", {"message": message, "configuration": {"returnImmediately": True}}, headers)
        return said if isinstance(said, int) else said["task"]["status"]["state"]

    def state(self, open_):
        return self.call("GetTask", {"id": open_["taskId"]}, bearer(OWNER))["status"]["state"]


def equal(found, wanted):
    assert found == wanted, f"{found!r} is not {wanted!r}"


def credentials(server):
    def status(headers):
        answer = server.raw("ListTasks", {}, headers)
        return answer.status_code, answer.json().get("code")

    now = int(time.time())
    equal(status({}), (401, "credential_required"))
    equal(status({"Authorization": "Bearer no"}), (401, "credential_invalid"))
    equal(status(bearer("a", iat=now - 200, exp=now - 140)), (401, "token_expired"))
    equal(status(bearer("a", exp=now + 600)), (401, "credential_invalid"))
    equal(status(bearer("a", aud="another")), (401, "credential_invalid"))
    equal(status(bearer("a", iss="https://another")), (401, "credential_invalid"))
    equal(status(bearer("a", scope="")), (403, "scope_required"))
    equal(status({**bearer("a"), "Nylorun-Subject": "b"}), (403, "key_role_mismatch"))
    equal(status({"Authorization": "Bearer K", "Nylorun-Subject": "b"}), (403, "scope_required"))
    header, payload, signature = bearer("a")["Authorization"].split(".")
    equal(status({"Authorization": f"{header}.{payload[:-2]}AA.{signature}"}), (401, "credential_invalid"))
    equal(status(bearer("a", kid="ed")), (200, None))
    equal(status({"Authorization": "Bearer K", "Nylorun-Subject": "b", "Nylorun-Scopes": "sessions:own"}), (200, None))
    equal(server.raw("ListTasks", {}, {**bearer("a"), "A2A-Version": "0.3"}).json()["error"]["code"], -32009)


def refusals_change_nothing(server):
    open_ = server.control("ask", owner=OWNER, detail={"server": "pager", "tool": "close_incident"})
    dana = bearer(DANA)
    equal(server.answer(open_, "m0", {"Authorization": "Bearer K"}), -32602)
    equal(server.answer(open_, "m1", dana, parts=[{"text": "yes"}], metadata={}), -32004)
    equal(server.answer(open_, "m2", dana, parts=[{"text": "yes"}, {"data": {}}]), -32005)
    equal(server.answer(open_, "m3", dana, parts=[{"url": "https://x"}]), -32005)
    equal(server.answer(open_, "m4", dana, metadata={URI: {"interactionId": "another", "approved": True}}), -32004)
    equal(server.answer(open_, "m5", dana, metadata={URI: {"approved": True}}), -32602)
    equal(server.answer(open_, "m6", dana, contextId="another"), -32602)
    equal(server.answer(open_, "m7", dana, taskId="another"), -32001)
    equal(server.answer(open_, "m8", dana, approved="yes"), -32004)
    equal(server.answer(open_, "m 9", dana), -32602)
    equal(server.state(open_), "TASK_STATE_AUTH_REQUIRED")
    equal(server.dump()["interactions"][open_["interactionId"]]["approvedBy"], None)
    return open_


def one_answer(server, open_):
    dana = bearer(DANA)
    for _ in range(3):
        equal(server.answer(open_, "mine", dana), "TASK_STATE_WORKING")
    equal(server.answer(open_, "mine", dana, approved=False), -32602)
    equal(server.answer(open_, "second", dana), -32004)
    server.control("end", taskId=open_["taskId"], state="completed")
    equal(server.answer(open_, "mine", dana), "TASK_STATE_COMPLETED")
    equal(server.answer(open_, "third", dana), -32004)
    recorded = server.dump()["interactions"][open_["interactionId"]]
    equal([recorded[field] for field in ("approvedBy", "actor", "messageId", "approved")], [DANA, "countersign", "mine", True])
    sent = [request for request in server.dump()["requests"] if request.get("messageId") == "mine"]
    equal(len(sent), 5)


def ends(server):
    open_ = server.control("ask", owner=OWNER)
    equal(server.call("CancelTask", {"id": open_["taskId"]}, bearer(OWNER))["status"]["state"], "TASK_STATE_CANCELED")
    equal(server.call("CancelTask", {"id": open_["taskId"]}, bearer(OWNER)), -32002)
    equal(server.answer(open_, "late", bearer(DANA)), -32004)
    for state in ("completed", "failed", "rejected", "canceled", "working"):
        open_ = server.control("ask", owner=OWNER)
        equal(server.control("end", taskId=open_["taskId"], state=state), {"state": f"TASK_STATE_{state.upper()}"})
        equal(server.answer(open_, "late", bearer(DANA)), -32004)
    open_ = server.control("ask", owner=OWNER)
    server.control("answer", taskId=open_["taskId"], subject=OWNER, approved=False)
    equal(server.answer(open_, "late", bearer(DANA)), -32004)
    next_ = server.control("ask", taskId=open_["taskId"], prompt="And now?")
    equal(server.state(next_), "TASK_STATE_AUTH_REQUIRED")
    equal(server.answer(open_, "stale", bearer(DANA)), -32004)
    equal(server.answer(next_, "now", bearer(DANA), approved=False), "TASK_STATE_WORKING")
    equal(server.dump()["interactions"][next_["interactionId"]]["effect"], "tool.denied")


def other_kinds(server):
    question = server.control("ask", owner=OWNER, kind="question", prompt="Which region?")
    equal(server.state(question), "TASK_STATE_INPUT_REQUIRED")
    equal(server.answer(question, "text", bearer(DANA), parts=[{"text": "eu"}], metadata={}), "TASK_STATE_WORKING")
    equal(server.dump()["interactions"][question["interactionId"]]["value"], "eu")
    for value, connected in (({"connected": True}, True), (True, True), ({"connected": "yes"}, False), ("ok", False)):
        app = server.control("ask", owner=OWNER, kind="connection", prompt="Connect github: to read issues")
        metadata = {URI: {"interactionId": app["interactionId"], "value": value}}
        equal(server.answer(app, "c", bearer(DANA), metadata=metadata), "TASK_STATE_WORKING")
        equal(server.dump()["interactions"][app["interactionId"]]["connected"], connected)


def race(server):
    open_ = server.control("ask", owner=OWNER)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        tries = [pool.submit(server.answer, open_, f"r{i}", bearer(f"p{i}@example.com"), i % 2 == 0) for i in range(8)]
    equal(sorted(str(one.result()) for one in tries), ["-32004"] * 7 + ["TASK_STATE_WORKING"])


def lists(server):
    for _ in range(3):
        server.control("ask", owner="pages@example.com")
    seen, token = [], ""
    while True:
        asked = {"status": "TASK_STATE_AUTH_REQUIRED", "pageSize": 2, "pageToken": token, "historyLength": 0}
        page = server.call("ListTasks", asked, {"Authorization": "Bearer K"})
        seen += [task["id"] for task in page["tasks"]]
        token = page["nextPageToken"]
        if not token:
            break
    assert len(seen) == len(set(seen)) >= 3, seen
    equal(server.call("ListTasks", {"pageSize": 101}, bearer(OWNER)), -32602)


def foreign_not_found():
    with Server("--foreign", "not-found") as server:
        open_ = server.control("ask", owner=OWNER)
        equal(server.call("GetTask", {"id": open_["taskId"]}, bearer(DANA)), -32001)
        equal(server.call("ListTasks", {}, bearer(DANA))["tasks"], [])
        equal(server.answer(open_, "m", bearer(DANA)), -32001)
        equal(len(server.call("ListTasks", {}, {"Authorization": "Bearer K"})["tasks"]), 1)
        equal(server.answer(open_, "m", bearer(OWNER)), "TASK_STATE_WORKING")


def without_deduplication():
    with Server("--dedupe", "no") as server:
        open_ = server.control("ask", owner=OWNER)
        equal(server.answer(open_, "m", bearer(DANA)), "TASK_STATE_WORKING")
        equal(server.answer(open_, "m", bearer(DANA)), -32004)
        history = server.dump()["tasks"][open_["taskId"]]["history"]
        assert "m" in [message["messageId"] for message in history], history


with Server() as one:
    credentials(one)
    one_answer(one, refusals_change_nothing(one))
    ends(one)
    other_kinds(one)
    race(one)
    lists(one)
foreign_not_found()
without_deduplication()
print("as promised")
