"""The orders that the foreign publisher sends: the same for the same seed, whatever happened to the connection."""

import hashlib
import json
import random
import uuid
from datetime import datetime, timedelta, timezone

import pika

from odd_headers import families
from unicode_texts import PAIRS, TEXTS, fill

LARGE_BYTES = 1_048_576
START = datetime(2025, 3, 30, 0, 59, 0, tzinfo=timezone.utc)
LONGEST_ID = 255
NO_ID = [None, "", "   "]


class Message:
    """One message: what goes on the wire and what the manifest says about it."""

    def __init__(self, seq, kind, message_id, order_id, body, properties, headers):
        self.seq, self.kind, self.id, self.order_id = seq, kind, message_id, order_id
        self.body, self.properties, self.headers = body, properties, headers

    def entry(self, sent, confirmed):
        return {
            "seq": self.seq,
            "id": self.id,
            "kind": self.kind,
            "orderId": self.order_id,
            "sha256": hashlib.sha256(self.body).hexdigest(),
            "bytes": len(self.body),
            "headers": self.headers,
            "sent": sent,
            "confirmed": confirmed,
        }


class Orders:
    """`orders[seq]` is a message, made anew at each call."""

    def __init__(self, seed, queue, user):
        self.seed, self.queue, self.user = seed, queue, user
        self.families = list(families(queue).items())
        self.empty, self.without_id, self.large = random.Random(f"{seed}").sample(range(100), 3)

    def kind(self, seq):
        return {self.empty: "empty", self.without_id: "no-id"}.get(seq % 100, "order")

    def __getitem__(self, seq):
        kind = self.kind(seq)
        event_id, order_id = self.event_id(seq), self.order_id(seq)
        body = b"" if kind == "empty" else self.body(seq, event_id, order_id)
        message_id = NO_ID[seq // 100 % len(NO_ID)] if kind == "no-id" else event_id
        family, odd = self.families[seq % len(self.families)]
        headers = {
            "seq": seq,
            "schemaVersion": 1,
            "aggregateId": order_id,
            "traceId": f"trace-{self.seed}-{seq}",
            "occurredAt": self.occurred_at(seq),
            **odd,
        }
        properties = pika.BasicProperties(
            content_type="application/json",
            delivery_mode=2,
            headers=headers,
            message_id=message_id,
            type="order.created",
            **self.some_properties(seq),
        )
        return Message(seq, kind, message_id, None if kind == "empty" else order_id, body, properties, family)

    def event_id(self, seq):
        pair, side = divmod(seq, 2)
        base = f"evt-{self.seed}-{pair:06}"
        if pair % 10 == 0:
            return f"{base}-{PAIRS[pair // 10 % len(PAIRS)][side]}"
        if pair % 10 == 1:
            return f"{base}{side}-{TEXTS[pair // 10 % len(TEXTS)]}"
        if pair % 100 == 2:
            return fill(base + "-" + "a" * LONGEST_ID, LONGEST_ID - 1) + str(side)
        if pair % 100 == 3:
            return fill(f"{base}{side}-" + "🛒" * LONGEST_ID, LONGEST_ID)
        if pair % 2:
            return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.seed}-{seq}"))
        return f"{base}-{side}"

    def order_id(self, seq):
        unusual = f"-{TEXTS[seq // 50 % len(TEXTS)]}" if seq % 50 == 7 else ""
        return f"order-{self.seed}-{seq}{unusual}"

    def occurred_at(self, seq):
        at = START + timedelta(seconds=seq, milliseconds=seq % 1000)
        zone = timezone(timedelta(hours=seq % 3 * 5, minutes=seq % 3 * 15))
        return at.astimezone(zone).isoformat(timespec="milliseconds" if seq % 2 else "seconds")

    def body(self, seq, event_id, order_id):
        rng = random.Random(f"{self.seed}-{seq}")
        order = {
            "eventId": event_id,
            "orderId": order_id,
            "customerId": f"customer-{rng.randrange(1000)}",
            "amount": rng.randrange(1, 1_000_000) / 100,
            "currency": rng.choice(["EUR", "USD", "JPY", "INR"]),
            "occurredAt": self.occurred_at(seq),
            # Not asked for by anybody: a consumer has to cope with it.
            "note": TEXTS[seq % len(TEXTS)] + ("\0" if seq % 40 == 3 else ""),
        }
        if seq % 1000 == self.large:
            order["note"] += fill("pad é 🛒 " * 100_000, LARGE_BYTES - len(encode(order, seq)))
            return encode(order, 0)
        return encode(order, seq)

    def some_properties(self, seq):
        """What well-meaning programs set besides; a consumer that republishes must not resend all of them."""
        return [
            {},
            {"app_id": "order-service", "correlation_id": f"corr-{seq}", "timestamp": 1_700_000_000 + seq},
            {"priority": seq % 256, "reply_to": "somewhere", "content_encoding": "utf-8"},
            {"expiration": "86400000"},
            {"user_id": self.user},
            {"correlation_id": TEXTS[seq % len(TEXTS)], "app_id": TEXTS[-seq % len(TEXTS)], "cluster_id": "one"},
        ][seq // len(self.families) % 6]


def encode(order, seq):
    if seq % 4 == 1:
        return json.dumps(order).encode()
    if seq % 4 == 2:
        return json.dumps(order, ensure_ascii=False, indent=2).encode()
    return json.dumps(order, ensure_ascii=False, separators=(",", ":")).encode()
