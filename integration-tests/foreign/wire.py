"""Bytes of AMQP 0-9-1, written by hand: whatever a field type allows, and what it does not."""

import struct


def short(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return bytes([len(raw)]) + raw


def long(raw):
    raw = raw if isinstance(raw, bytes) else raw.encode()
    return struct.pack(">I", len(raw)) + raw


def field(kind, layout, *values):
    return kind.encode() + struct.pack(">" + layout, *values)


def int8(n):
    return field("b", "b", n)


def uint8(n):
    return field("B", "B", n)


def int16(n):
    return field("s", "h", n)


def uint16(n):
    return field("u", "H", n)


def int32(n):
    return field("I", "i", n)


def uint32(n):
    return field("i", "I", n)


def int64(n):
    return field("l", "q", n)


def float32(x):
    return field("f", "f", x)


def float64(x):
    return field("d", "d", x)


def decimal(scale, n):
    return field("D", "BI", scale, n % 2**32)


def timestamp(n):
    return field("T", "Q", n)


def boolean(n):
    return field("t", "B", n)


def text(raw):
    return b"S" + long(raw)


def octets(raw):
    return b"x" + long(raw)


def array(*fields):
    return b"A" + long(b"".join(fields))


def table(*pairs):
    return b"F" + long(pairs_of(pairs))


def pairs_of(pairs):
    return b"".join(short(name) + value for name, value in pairs)


VOID = b"V"

METHOD, HEADER, BODY, FRAME_END = 1, 2, 3, b"\xce"


def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + FRAME_END


def method(channel, class_id, method_id, arguments=b""):
    return frame(METHOD, channel, struct.pack(">HH", class_id, method_id) + arguments)


# Bits of the property flags, with the layout of their values, in the order of the wire.
PROPERTIES = {
    "content_type": (15, short),
    "content_encoding": (14, short),
    "headers": (13, lambda pairs: long(pairs_of(pairs))),
    "delivery_mode": (12, lambda n: bytes([n])),
    "priority": (11, lambda n: bytes([n])),
    "correlation_id": (10, short),
    "reply_to": (9, short),
    "expiration": (8, short),
    "message_id": (7, short),
    "timestamp": (6, lambda n: struct.pack(">Q", n)),
    "type": (5, short),
    "user_id": (4, short),
    "app_id": (3, short),
    "cluster_id": (2, short),
}


def content(channel, body, properties, most):
    """A content header and as many body frames as frames of at most `most` bytes need."""
    flags, values = 0, b""
    for name, (bit, layout) in PROPERTIES.items():
        if properties.get(name) is not None:
            flags |= 1 << bit
            values += layout(properties[name])
    yield frame(HEADER, channel, struct.pack(">HHQH", 60, 0, len(body), flags) + values)
    room = most - 8
    for start in range(0, len(body), room):
        yield frame(BODY, channel, body[start : start + room])
