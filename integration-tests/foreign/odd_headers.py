"""Headers of all types that pika can write, and headers that brokers and retry tools use themselves.

Never CC or BCC: with them RabbitMQ would send copies elsewhere.
"""

from datetime import datetime, timezone
from decimal import Decimal

from pika.compat import long

from unicode_texts import TEXTS

LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)
LEAP = datetime(2024, 2, 29, 23, 59, 59, tzinfo=timezone.utc)
FAR = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)


def nested(depth):
    return {"deeper": nested(depth - 1), "n": depth} if depth else {"bottom": True}


def nested_list(depth):
    return [nested_list(depth - 1), depth] if depth else []


def death(queue, **more):
    told = {"count": long(3), "reason": "rejected", "queue": queue, "time": LEAP, "exchange": "orders.dead"}
    return dict(told, **{"routing-keys": [queue]}, **more)


def families(queue):
    """Name and headers of each family, in an order that does not change."""
    return {
        "none": {},
        "bool": {"yes": True, "no": False},
        "int32": {"zero": 0, "minus": -1, "most": 2**31 - 1, "least": -(2**31)},
        "int64": {"over": 2**31, "under": -(2**31) - 1, "most": 2**63 - 1, "least": -(2**63)},
        "int64-small": {"one": long(1), "zero": long(0), "minus": long(-7)},
        "decimal": {"price": Decimal("12.34"), "minus": Decimal("-0.000001"), "whole": Decimal("2147483647")},
        "decimal-scale": {"tiny": Decimal("1E-30"), "zero": Decimal("0.00"), "thousand": Decimal("1E3")},
        "datetime": {"epoch": LONG_AGO, "leap": LEAP, "far": FAR},
        "text": {"ascii": "plain", "empty": "", "space": "   ", "nul": "a\0b"},
        "unicode": {f"text-{n}": text for n, text in enumerate(TEXTS)},
        "unicode-names": {text: n for n, text in enumerate(TEXTS)},
        "long-text": {"long": "long é 🛒 " * 5000},
        "bytes": {"all": bytes(range(256)), "empty": b"", "not-utf8": b"\xff\xfe", "long": b"\x00\xff" * 9000},
        "none-value": {"nothing": None},
        "table": {"empty": {}, "flat": {"a": 1, "b": "two"}, "five": nested(5), "twenty": nested(20)},
        "list": {
            "empty": [],
            "mixed": [1, "two", None, True, b"\x00", Decimal("3.3"), LEAP, {"k": []}],
            "five": nested_list(5),
        },
        "many": {f"header-{n:03}": n for n in range(200)},
        "names": {
            "": "empty name",
            "n" * 127: 1,
            "N" * 128: 2,
            "with space": 3,
            "dotted.name": 4,
            "Case": 5,
            "case": 6,
        },
        "x-death": {
            "x-death": [death("elsewhere")],
            "x-first-death-queue": "elsewhere",
            "x-first-death-reason": "expired",
            "x-first-death-exchange": "",
        },
        "x-death-ours": {
            "x-death": [death(queue), death(queue, reason="expired")],
            "x-last-death-queue": queue,
            "x-last-death-reason": "rejected",
        },
        "x-death-text": {"x-death": "nonsense"},
        "x-death-number": {"x-death": 12},
        "x-death-table": {"x-death": {"count": "many"}},
        "x-death-list": {"x-death": [1, None, "two", {}, {"count": None, "queue": 5}]},
        "x-delivery-count": {"x-delivery-count": 41},
        "x-delivery-count-text": {"x-delivery-count": "forty-one"},
        "x-delivery-count-table": {"x-delivery-count": {}, "x-acquired-count": []},
        "retry-tools": {
            "x-retry": 99,
            "x-retries": "99",
            "x-retry-count": long(99),
            "attempt": -1,
            "attempts": 2**63 - 1,
            "x-attempt": None,
            "x-delay": 86_400_000,
            "x-match": "all",
            "x-message-ttl": 1,
        },
        "other-tools": {
            "x-stream-offset": long(5),
            "x-received-from": [{"uri": "amqp://elsewhere"}],
            "x-deduplication-header": "same for all",
            "rbs2-msg-id": "same for all",
            "NServiceBus.MessageId": "same for all",
            "MT-MessageId": "same for all",
        },
        "traces": {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "vendor=1"},
    }
