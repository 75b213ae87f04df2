#!/usr/bin/env python3
"""Publishes orders to RabbitMQ as a foreign program does: with pika, knowing nothing of the consumer.

    publish_orders.py --url amqp://guest:guest@127.0.0.1:25472/%2f --queue orders --manifest orders.json

All is determined by --seed: ids, bodies, headers. Of 10,000 messages, 10 have a body of 1 MiB, 100 an empty body, 100
no id (absent, "" or three spaces). Messages are persistent and mandatory; each is sent again, under the same id, until
the broker has confirmed it and has not returned it. Restart RabbitMQ as often as you like meanwhile. Lines
`confirmed=N sent=N connections=N …` on the output tell how far it is; the last one starts with `done`.
Exit code 0: all are confirmed. 1: the deadline has passed. The manifest (see manifest.py) is written in both cases.

RabbitMQ 3.10.8, as tried:
- It takes all of these messages (`user_id` only where it is the user of the connection).
- A quorum queue that was declared less than a second before the node is killed hard comes back empty, whatever was
  confirmed, and may stay without a leader until
  `rabbitmqctl eval 'ra:trigger_election({list_to_atom("%2F_QUEUE"), node()}).'`. Let a new queue settle first: older
  ones lost nothing in twelve hard kills.
- What it does with odder headers is said in raw_amqp.py.
"""

import argparse
import logging
import sys
from urllib.parse import unquote, urlsplit

import manifest
import topology
from orders import Orders
from publisher import Publisher


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--url", required=True, help="amqp://user:password@host:port/vhost")
    add("--exchange", default="", help="the default exchange if not given")
    add("--queue", required=True, help="where the messages shall arrive; the routing key of the default exchange")
    add("--routing-key", default="order.created", help="for an exchange that is given")
    add("--declare", action="store_true", help="declare the quorum queue, the topic exchange and the binding first")
    add("--count", type=int, default=10_000)
    add("--seed", default="1")
    add("--manifest", required=True, help="file to write")
    add("--window", type=int, default=200, help="how many may be unconfirmed")
    add("--rate", type=float, default=0, help="messages a second, at most; 0 is as fast as possible")
    add("--patience", type=float, default=30, help="seconds without any answer after which to connect anew")
    add("--deadline", type=float, default=600, help="seconds")
    add("--progress", type=int, default=500, help="messages between two lines of output")
    return parser.parse_args()


def main():
    args = arguments()
    # Broken connections are what this program is for.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    user = unquote(urlsplit(args.url).username or "guest")
    orders = Orders(args.seed, args.queue, user)
    if len({orders.event_id(seq) for seq in range(args.count)}) != args.count:
        return manifest.fail("two messages would have the same id")
    routing_key = args.routing_key if args.exchange else args.queue
    if args.declare:
        topology.declare(args.url, args.exchange, args.queue, routing_key)

    def line(publisher, start):
        counts = {"confirmed": len(publisher.confirmed), "sent": publisher.started}
        counts.update(connections=publisher.connections, returned=publisher.returns, nacked=publisher.nacks)
        manifest.say(" ".join([*start, *(f"{name}={value}" for name, value in counts.items())]))

    def progress(publisher, event):
        if event or len(publisher.confirmed) % args.progress == 0:
            line(publisher, [event] if event else [])

    publisher = Publisher(
        args.url,
        args.exchange,
        routing_key,
        orders,
        args.count,
        args.window,
        args.rate,
        args.deadline,
        args.patience,
        progress,
    )
    done = publisher.run()
    entries = [orders[seq].entry(publisher.sent[seq], publisher.confirmed[seq]) for seq in range(args.count)]
    manifest.save(args.manifest, {"seed": args.seed, "queue": args.queue, "messages": entries})
    if not done:
        return manifest.fail(f"{args.count - len(publisher.confirmed)} of {args.count} are not confirmed")
    line(publisher, ["done"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
