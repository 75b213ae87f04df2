"""The raw messages: name and headers of each, by category.

types     what RabbitMQ takes and any client should cope with
extreme   the same, at the edge: values and shapes that many clients have no type for
not-utf8  names and properties that are no UTF-8, though the specification demands it
attempt   a retry counter of every type, under the name that --attempt-header gives
refused   what RabbitMQ 3.10.8 closes the connection for
"""

import math
import struct

import wire
from unicode_texts import TEXTS
from wire import (
    VOID,
    array,
    boolean,
    decimal,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    octets,
    table,
    text,
    timestamp,
    uint8,
    uint16,
    uint32,
)

NOW = 1_742_000_000
ONE_OF_EACH = [
    boolean(1),
    int8(-1),
    uint8(255),
    int16(-1),
    uint16(65535),
    int32(-1),
    uint32(2**32 - 1),
    int64(-1),
    float32(0.5),
    float64(0.1),
    decimal(2, 1234),
    text("text é"),
    octets(b"\xff\xfe"),
    timestamp(NOW),
    array(),
    table(),
    VOID,
]
LETTERS = "tbBsuIilfdDSxTAFV"


def deep_table(depth):
    return table(("deeper", deep_table(depth - 1)), ("n", uint8(depth))) if depth else table(("bottom", VOID))


def deep_array(depth):
    return array(deep_array(depth - 1), uint8(depth)) if depth else array(VOID)


def types():
    yield from ((f"{letter}", [("value", value)]) for letter, value in zip(LETTERS, ONE_OF_EACH, strict=True))
    yield "t-false", [("value", boolean(0))]
    yield "b-range", [("least", int8(-128)), ("most", int8(127))]
    yield "B-range", [("least", uint8(0)), ("most", uint8(255))]
    yield "s-range", [("least", int16(-32768)), ("most", int16(32767))]
    yield "u-range", [("least", uint16(0)), ("most", uint16(65535))]
    yield "I-range", [("least", int32(-(2**31))), ("most", int32(2**31 - 1))]
    yield "i-range", [("least", uint32(0)), ("most", uint32(2**32 - 1))]
    yield "l-range", [("least", int64(-(2**63))), ("most", int64(2**63 - 1))]
    yield "L", [("most", wire.field("L", "q", 2**63 - 1)), ("minus", wire.field("L", "q", -1))]
    yield "f-range", [("minus-zero", float32(-0.0)), ("smallest", float32(1e-45)), ("most", float32(3.4e38))]
    yield "d-range", [("minus-zero", float64(-0.0)), ("smallest", float64(5e-324)), ("most", float64(1.7e308))]
    yield "D-scale", [("none", decimal(0, 7)), ("five", decimal(5, 1)), ("most", decimal(9, 2**31 - 1))]
    yield "D-minus", [("minus", decimal(2, -1234))]
    yield "S-unicode", [(f"text-{n}", text(one)) for n, one in enumerate(TEXTS)]
    yield "S-not-utf8", [("raw", text(b"\xff\xfe")), ("cut", text("é".encode()[:1])), ("latin", text(b"caf\xe9"))]
    yield "S-nul", [("nul", text(b"a\0b")), ("only", text(b"\0"))]
    yield "S-empty", [("empty", text(b""))]
    yield "S-long", [("long", text(b"0123456789" * 8000))]
    yield "x-all-bytes", [("all", octets(bytes(range(256)))), ("empty", octets(b""))]
    yield "T-range", [("epoch", timestamp(0)), ("milliseconds", timestamp(NOW * 1000))]
    yield "A-mixed", [("mixed", array(*ONE_OF_EACH))]
    yield "A-5-deep", [("deep", deep_array(5))]
    yield "F-5-deep", [("deep", deep_table(5))]
    yield "F-mixed", [("mixed", table(*zip(LETTERS, ONE_OF_EACH, strict=True)))]
    yield "V-many", [(f"void-{n}", VOID) for n in range(20)]
    yield "all", list(zip(LETTERS, ONE_OF_EACH, strict=True))
    for letter, value in [
        ("b", int8(1)),
        ("B", uint8(1)),
        ("s", int16(1)),
        ("u", uint16(1)),
        ("i", uint32(1)),
        ("l", int64(1)),
        ("S", text("1")),
    ]:
        yield f"schemaVersion-{letter}", [("schemaVersion", value)]


def extreme():
    yield "t-two", [("value", boolean(2))]
    yield "D-scale-255", [("value", decimal(255, 1))]
    yield "D-unsigned", [("value", decimal(0, 2**32 - 1))]
    yield "T-most", [("value", timestamp(2**64 - 1))]
    yield "T-signed-most", [("value", timestamp(2**63 - 1))]
    yield "F-100-deep", [("deep", deep_table(100))]
    yield "A-100-deep", [("deep", deep_array(100))]
    yield "same-name-twice", [("value", int32(1)), ("value", text("two"))]
    yield "name-of-255", [("n" * 255, VOID)]
    yield "empty-name", [("", VOID)]
    yield "name-with-nul", [("a\0b", VOID)]
    yield "thousand-headers", [(f"header-{n}", VOID) for n in range(1000)]


def attempt(name):
    values = [
        *ONE_OF_EACH,
        float64(2.0),
        text("2"),
        text("two"),
        int64(2**63 - 1),
        int64(-(2**63)),
        boolean(0),
        int8(2),
    ]
    for n, value in enumerate(values):
        yield f"attempt-{n}-{chr(value[0])}", [(name, value)]


def refused():
    yield "U", [("value", wire.field("U", "h", -1))]
    yield "f-nan", [("value", float32(math.nan))]
    yield "f-infinite", [("value", float32(math.inf))]
    yield "d-nan", [("value", float64(math.nan))]
    yield "d-infinite", [("value", float64(-math.inf))]
    yield "unknown-type", [("value", b"Z")]
    yield "cut-table", [("value", b"F" + struct.pack(">I", 100))]
    yield "cut-text", [("value", b"S" + struct.pack(">I", 2**32 - 1) + b"short")]


def not_utf8():
    """Name, headers, and properties that replace the usual ones."""
    yield "name", [(b"\xff\xfe", text("value"))], {}
    yield "name-in-table", [("value", table((b"caf\xe9", VOID)))], {}
    yield "message_id", [], {"message_id": b"evt-raw-\xff\xfe"}
    yield "type", [], {"type": b"order.\xe9"}
    yield "correlation_id", [], {"correlation_id": b"\xc3\x28"}
    yield "content_type", [], {"content_type": b"\xed\xa0\x80"}
    yield "app_id", [], {"app_id": b"\xf8\x88\x80\x80\x80"}


def cases(category, attempt_header):
    if category == "not-utf8":
        return list(not_utf8())
    chosen = {"types": types, "extreme": extreme, "refused": refused}.get(category, lambda: attempt(attempt_header))
    return [(name, headers, {}) for name, headers in chosen()]
