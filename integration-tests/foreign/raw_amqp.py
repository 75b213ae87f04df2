#!/usr/bin/env python3
"""Publishes what pika cannot write, with header fields encoded by hand over a plain socket, and waits for confirms.

    raw_amqp.py --url … --queue orders --manifest orders.json [--category types --category extreme …]

The manifest is added to if it exists. Every message has an order as its body, an id (evt-raw-SEED-CATEGORY-NAME) and a
`seq` from 1,000,000 on. Each is sent again until it is confirmed, over restarts, until the deadline.
Categories are described in raw_cases.py; without --category it is types and extreme.

What RabbitMQ 3.10.8 does, as tried:
- It closes the whole connection with 541 INTERNAL_ERROR, without saying what for, for: type `U`, an unknown type, a
  float or double that is NaN or infinite, a table or text that is longer than its frame. Nothing of these reaches a
  queue, and publishes that were unconfirmed on the connection are unknown.
- It takes everything else, also header names and properties (message_id too) that are no UTF-8, though the
  specification forbids them, and hands these to consumers as they are: a strict client may fail on them.
- It delivers type `L` as `l`, and a boolean of 2 as 1. All other fields come out as they went in, byte for byte.
- Once a message was given back to a quorum queue, its headers are sorted by name and have `x-delivery-count` (`l`)
  among them; one that the publisher had set itself is overwritten.
- A foreign `x-death` or `x-delivery-count` of whatever type passes unread when published.
- pika fails on timestamps beyond the year 9999 (category extreme), see check_queue.py.
"""

import argparse
import hashlib
import json
import os
import sys
import time

import manifest
import topology
import wire
from raw_cases import cases
from raw_client import Client, Refused

CATEGORIES = ["types", "extreme", "not-utf8", "attempt", "refused"]


class Message:
    def __init__(self, seq, seed, category, case):
        self.seq, self.category = seq, category
        self.name, headers, replaced = case
        event_id = f"evt-raw-{seed}-{category}-{self.name}"
        self.order_id = f"order-raw-{seed}-{category}-{self.name}"
        at = "2025-03-30T02:30:00+01:00"
        order = {
            "eventId": event_id,
            "orderId": self.order_id,
            "customerId": "customer-raw",
            "amount": 12.5,
            "currency": "EUR",
            "occurredAt": at,
        }
        self.body = json.dumps(order).encode()
        usual = {
            "seq": wire.int32(seq),
            "schemaVersion": wire.int32(1),
            "aggregateId": wire.text(self.order_id),
            "traceId": wire.text(f"trace-raw-{seq}"),
            "occurredAt": wire.text(at),
        }
        own = {name for name, _ in headers}
        self.properties = {
            "content_type": "application/json",
            "headers": [(name, value) for name, value in usual.items() if name not in own] + headers,
            "delivery_mode": 2,
            "message_id": event_id,
            "type": "order.created",
            **replaced,
        }
        self.sent = self.confirmed = 0

    def entry(self):
        message_id = self.properties["message_id"]
        is_text = isinstance(message_id, str)
        return {
            "seq": self.seq,
            "id": message_id if is_text else None,
            **({} if is_text else {"idHex": message_id.hex()}),
            "kind": "order",
            "orderId": self.order_id,
            "sha256": hashlib.sha256(self.body).hexdigest(),
            "bytes": len(self.body),
            "headers": f"raw-{self.category}-{self.name}",
            "sent": self.sent,
            "confirmed": self.confirmed,
        }


def publish(args, messages):
    """Sends what is not confirmed yet, over one connection."""
    client = Client(args.url)
    try:
        for message in messages:
            if message.confirmed == 0:
                message.sent += 1
                message.confirmed += client.publish(args.exchange, args.routing_key, message.body, message.properties)
    finally:
        client.close()


def publish_all(args, messages, ends_at):
    while any(message.confirmed == 0 for message in messages) and time.monotonic() < ends_at:
        try:
            publish(args, messages)
        except OSError as error:
            manifest.say(f"disconnected={type(error).__name__}")
        time.sleep(0.3)


def publish_refused(args, messages):
    """Each on a connection of its own, and only once: what the broker says is the result."""
    for message in messages:
        try:
            publish(args, [message])
            manifest.say(f"{message.category} {message.name}: confirmed={message.confirmed}")
        except (Refused, OSError) as error:
            manifest.say(f"{message.category} {message.name}: {error}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--url", required=True, help="amqp://user:password@host:port/vhost")
    add("--exchange", default="", help="the default exchange if not given")
    add("--queue", required=True, help="where the messages shall arrive; the routing key of the default exchange")
    add("--routing-key", default="order.created", help="for an exchange that is given")
    add("--declare", action="store_true", help="declare the quorum queue, the topic exchange and the binding first")
    add("--seed", default="1")
    add("--manifest", required=True, help="file to add to, or to write")
    add("--category", action="append", choices=CATEGORIES)
    add("--attempt-header", default="attempt", help="name of the header of the category attempt")
    add("--deadline", type=float, default=120, help="seconds")
    return parser.parse_args()


def main():
    args = arguments()
    args.routing_key = args.routing_key if args.exchange else args.queue
    if args.declare:
        topology.declare(args.url, args.exchange, args.queue, args.routing_key)
    known = {"seed": args.seed, "queue": args.queue, "messages": []}
    if os.path.exists(args.manifest):
        known = manifest.load(args.manifest)
    messages = []
    for category in args.category or ["types", "extreme"]:
        first = 1_000_000 + 1000 * CATEGORIES.index(category)
        messages += [
            Message(first + n, args.seed, category, case) for n, case in enumerate(cases(category, args.attempt_header))
        ]
    refusable = [message for message in messages if message.category == "refused"]
    wanted = [message for message in messages if message.category != "refused"]
    try:
        publish_all(args, wanted, time.monotonic() + args.deadline)
    except Refused as error:
        return manifest.fail(f"the broker refused a message that it should take: {error}")
    publish_refused(args, refusable)
    known["messages"] += [message.entry() for message in messages if message.sent and message.category != "refused"]
    known["messages"] += [message.entry() for message in refusable if message.confirmed]
    manifest.save(args.manifest, known)
    confirmed = sum(message.confirmed for message in messages)
    missing = [message.name for message in wanted if not message.confirmed]
    if missing:
        return manifest.fail(f"not confirmed: {', '.join(missing)}")
    manifest.say(f"done confirmed={confirmed} of={len(messages)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
