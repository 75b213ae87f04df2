#!/usr/bin/env python3
"""Reads a queue until it is empty and checks it against a manifest.

    check_queue.py --url … --queue orders --manifest orders.json

Each message of the manifest must be there, with the right body and id, between `confirmed` and `sent` times; nothing
else may be there. Messages are acknowledged, unless --keep is given.
"""

import argparse
import hashlib
import struct
import sys
from collections import Counter

import pika
import pika.data

import manifest

decode_table = pika.data.decode_table


def decode_what_it_can(encoded, offset):
    """pika fails on timestamps that Python has no date for; the message counts all the same."""
    try:
        return decode_table(encoded, offset)
    except (OverflowError, ValueError, OSError):
        return {}, offset + 4 + struct.unpack_from(">I", encoded, offset)[0]


def read(url, queue, keep):
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.basic_qos(prefetch_count=0 if keep else 500)
    while True:
        for method, properties, body in channel.consume(queue, inactivity_timeout=0.5):
            if method is None:
                break
            yield properties, body
            if not keep:
                channel.basic_ack(method.delivery_tag)
        if channel.queue_declare(queue, passive=True).method.message_count == 0:
            break
    connection.close()


def as_sent(properties):
    """An id as the manifest writes it: pika gives bytes for what is no UTF-8."""
    message_id = properties.message_id
    return message_id.hex() if isinstance(message_id, bytes) else message_id


def differences(expected, messages):
    by_seq = {entry["seq"]: entry for entry in expected}
    by_id = {entry.get("idHex", entry["id"]): entry for entry in expected if entry["kind"] != "no-id"}
    copies = Counter()
    for properties, body in messages:
        entry = by_seq.get((properties.headers or {}).get("seq")) or by_id.get(as_sent(properties))
        if entry is None:
            yield f"a message that is not in the manifest, id {properties.message_id!r}"
            continue
        copies[entry["seq"]] += 1
        if entry.get("idHex", entry["id"]) != as_sent(properties):
            yield f"seq {entry['seq']}: the id is {properties.message_id!r}, not {entry['id']!r}"
        if hashlib.sha256(body).hexdigest() != entry["sha256"]:
            yield f"seq {entry['seq']}: another body"
    for entry in expected:
        if not entry["confirmed"] <= copies[entry["seq"]] <= entry["sent"] or not copies[entry["seq"]]:
            told = f"sent {entry['sent']} times, confirmed {entry['confirmed']} times"
            yield f"seq {entry['seq']}, id {entry['id']!r}: {copies[entry['seq']]} copies, {told}"
    manifest.say(f"messages={sum(copies.values())} different={len(copies)} of={len(expected)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--keep", action="store_true", help="leave the messages in the queue")
    args = parser.parse_args()
    pika.data.decode_table = decode_what_it_can
    found = list(differences(manifest.load(args.manifest)["messages"], read(args.url, args.queue, args.keep)))
    for text in found[:20]:
        print(text)
    return manifest.fail(f"{len(found)} differences") if found else 0


if __name__ == "__main__":
    sys.exit(main())
