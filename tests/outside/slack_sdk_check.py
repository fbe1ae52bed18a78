"""slack_sdk's SignatureVerifier as judge of request signatures, in both directions.

Reads one JSON object a line and prints one for each:

    {"do": "verify", "secret": S, "timestamp": "1531420618", "body": B, "signature": "v0=…", "now": 1531420618}
        -> {"valid": true}
    {"do": "sign", "secret": S, "timestamp": "1531420618", "body": B}
        -> {"signature": "v0=…"}

`now` (seconds) is the verifier's clock, since tests own theirs; without it the machine's. A line that is no such
object ends the program with an error: a judge that skips a request proves nothing.
"""

import json
import sys

from slack_sdk.signature import Clock, SignatureVerifier


class At(Clock):
    def __init__(self, seconds):
        self.seconds = seconds

    def now(self):
        return self.seconds


def judge(asked):
    clock = At(asked["now"]) if "now" in asked else Clock()
    verifier = SignatureVerifier(asked["secret"], clock)
    if asked["do"] == "verify":
        headers = {"X-Slack-Request-Timestamp": asked["timestamp"], "X-Slack-Signature": asked["signature"]}
        return {"valid": verifier.is_valid_request(asked["body"].encode(), headers)}
    if asked["do"] == "sign":
        return {"signature": verifier.generate_signature(timestamp=asked["timestamp"], body=asked["body"].encode())}
    raise ValueError(f"unknown request {asked['do']!r}")


for line in sys.stdin:
    print(json.dumps(judge(json.loads(line))), flush=True)
