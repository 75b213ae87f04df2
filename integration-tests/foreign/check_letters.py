#!/usr/bin/env python3
"""Reads a queue of dead letters as a foreign program does and checks it against the manifest of what was published.

    check_letters.py --url … --queue orders.inventory.dead --manifest orders.json --origin orders --consumer inventory

Every message that has no usable id or no body must be there at least once: body and id byte for byte, every foreign
header with its type, no field that commands a broker, and the diagnostics. Nothing else may be there.
Letters stay in the queue. The last line is `done letters=N different=N`.
"""

import argparse
import hashlib
import sys
from collections import Counter

import pika
import pika.data

import manifest
from check_queue import as_sent, decode_what_it_can
from orders import Orders

COMMANDS = ["x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "CC", "BCC"]
OURS = "aftercommit-"
REASONS = {"no-id": "no message id", "empty": "the body is empty", "order": "message id is not text"}


def read(url, queue):
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    for method, properties, body in channel.consume(queue, inactivity_timeout=1):
        if method is None:
            break
        yield properties, body
    connection.close()


def same(one, other):
    """Also in type: a short number that came out as a long one is another header."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def over_the_wire(headers):
    pieces = []
    pika.data.encode_table(pieces, headers)
    return pika.data.decode_table(b"".join(pieces), 0)[0]


def is_command(name):
    return any(name == known or (known.endswith("-") and name.startswith(known)) for known in COMMANDS)


def faults(args, orders, entry, properties, body):
    headers = properties.headers
    if hashlib.sha256(body).hexdigest() != entry["sha256"]:
        yield "another body"
    if entry.get("idHex", entry["id"]) != as_sent(properties) and "idHex" not in entry:
        yield f"the id is {properties.message_id!r}"
    if properties.type != "order.created" or properties.content_type != "application/json":
        yield f"type {properties.type!r}, content type {properties.content_type!r}"
    if properties.expiration is not None or properties.user_id is not None:
        yield "expiration or user id were sent again"
    if properties.delivery_mode != 2:
        yield "it is not persistent"
    if entry["seq"] < 1_000_000:
        sent = over_the_wire(orders[entry["seq"]].properties.headers)
        wanted = {name: value for name, value in sent.items() if not is_command(name)}
        kept = {name: value for name, value in headers.items() if not name.startswith(OURS)}
        for name in sorted(wanted.keys() | kept.keys()):
            if name not in wanted or name not in kept or not same(wanted[name], kept[name]):
                yield f"header {name!r}: {wanted.get(name)!r} became {kept.get(name)!r}"
        commanded = [name for name in sent if is_command(name)]
        if commanded and commanded[0] not in headers.get(f"{OURS}broker-commands", ""):
            yield f"{commanded} are not among the diagnostics"
    for name, value in {
        "consumer": args.consumer,
        "failure-class": "poison",
        "last-error": REASONS[entry["kind"]],
        "original-routing-key": args.origin,
        "event-type": "order.created",
    }.items():
        if headers.get(OURS + name) != value:
            yield f"{name} is {headers.get(OURS + name)!r}, not {value!r}"
    if headers.get(f"{OURS}message-id") != (entry["id"] if entry["kind"] == "empty" else None):
        yield f"message-id is {headers.get(f'{OURS}message-id')!r}"
    if not headers.get(f"{OURS}attempts", 0) >= 1:
        yield "no attempts"
    for name in ["first-failed-at", "last-failed-at"]:
        if not headers.get(OURS + name, "").startswith("20"):
            yield f"no {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["--url", "--queue", "--manifest", "--origin", "--consumer"]:
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    pika.data.decode_table = decode_what_it_can
    known = manifest.load(args.manifest)
    orders = Orders(known["seed"], args.origin, "guest")
    wanted = {e["seq"]: e for e in known["messages"] if e["kind"] != "order" or "idHex" in e}
    copies, found = Counter(), []
    for properties, body in read(args.url, args.queue):
        seq = (properties.headers or {}).get("seq")
        entry = wanted.get(seq)
        if entry is None:
            error = (properties.headers or {}).get(f"{OURS}last-error")
            found.append(f"a letter that nobody expects: seq {seq}, id {properties.message_id!r}, {error!r}")
            continue
        copies[seq] += 1
        if not copies[seq] <= entry["sent"] + 10:
            found.append(f"seq {seq}: {copies[seq]} copies")
        found += [f"seq {seq} ({entry['headers']}): {fault}" for fault in faults(args, orders, entry, properties, body)]
    found += [f"seq {seq} ({e['kind']}, {e['headers']}): no letter" for seq, e in wanted.items() if not copies[seq]]
    for text in found[:20]:
        print(text)
    manifest.say(f"done letters={sum(copies.values())} different={len(copies)} of={len(wanted)}")
    return manifest.fail(f"{len(found)} faults") if found else 0


if __name__ == "__main__":
    sys.exit(main())
