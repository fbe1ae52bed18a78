"""Checks an exported audit log (JSON Lines on standard input) by the documented rules alone.

Written without the program's code and with the standard library only, as a foreign hand.
Prints the head as SEQ:HASH, or the first bad row, and exits 0 or 10.
"""
import hashlib
import json
import sys

COLUMNS = ["seq", "at", "event", "runtime", "interaction", "subject", "digest", "decision", "rule", "policy",
           "runtime_said", "private", "clicker", "reason", "salt", "prev", "hash"]
UNCHAINED = ["clicker", "reason", "salt", "prev", "hash"]


def canonical(value):
    # RFC 8785 for objects of strings, integers and null with ASCII keys.
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def flaw(row, seq, prev):
    if list(row) != COLUMNS:
        return "other columns"
    if row["seq"] != seq or row["prev"] != prev:
        return "does not follow"
    if "" in row.values():
        return "empty text"
    if row["hash"] != sha(prev + canonical({k: v for k, v in row.items() if k not in UNCHAINED})):
        return "hash"
    covered = [row["clicker"], row["reason"], row["salt"]]
    if any(value is not None for value in covered):
        if row["clicker"] is None or row["salt"] is None:
            return "half erased"
        if row["private"] != sha(row["salt"] + canonical({"clicker": row["clicker"], "reason": row["reason"]})):
            return "private"
    return None


def main():
    seq, prev = 0, "0" * 64
    for line in sys.stdin:
        row = json.loads(line)
        seq += 1
        why = flaw(row, seq, prev)
        if why:
            print(f"row {seq}: {why}")
            return 10
        prev = row["hash"]
    print(f"{seq}:{prev}")
    return 0


sys.exit(main())
