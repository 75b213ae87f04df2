"""A minimal AMQP 0-9-1 client on a plain socket: one connection, one channel, publishes with confirms."""

import socket
import struct
from urllib.parse import unquote, urlsplit

import wire

CHANNEL = 1
START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
CONNECTION_CLOSE, CONNECTION_CLOSE_OK = (10, 50), (10, 51)
CHANNEL_OPEN, CHANNEL_OPEN_OK, CHANNEL_CLOSE = (20, 10), (20, 11), (20, 40)
SELECT, SELECT_OK = (85, 10), (85, 11)
PUBLISH, RETURN, ACK, NACK = (60, 40), (60, 50), (60, 80), (60, 120)

# An operator ends the connection, as a node that shuts down does: not our fault.
CONNECTION_FORCED = 320


class Refused(Exception):
    """The broker closed the channel or the connection and said why."""


class Client:
    def __init__(self, url, timeout=20):
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port or 5672), timeout)
        self.received = self.socket.makefile("rb")
        user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self.expect(START)
        capabilities = [(name, wire.boolean(1)) for name in ("publisher_confirms", "basic.nack")]
        capabilities.append(("authentication_failure_close", wire.boolean(1)))
        properties = [("product", wire.text("raw")), ("capabilities", wire.table(*capabilities))]
        response = f"\0{user}\0{password}"
        arguments = (
            wire.long(wire.pairs_of(properties)) + wire.short("PLAIN") + wire.long(response) + wire.short("en_US")
        )
        self.send(wire.method(0, *START_OK, arguments))
        _, self.frame_max, _ = struct.unpack(">HIH", self.expect(TUNE))
        # No heartbeats: a connection lives for less than the broker would wait for one.
        self.send(wire.method(0, *TUNE_OK, struct.pack(">HIH", 1, self.frame_max, 0)))
        vhost = unquote(parts.path[1:]) or "/"
        self.send(wire.method(0, *OPEN, wire.short(vhost) + wire.short("") + b"\0"))
        self.expect(OPEN_OK)
        self.send(wire.method(CHANNEL, *CHANNEL_OPEN, wire.short("")))
        self.expect(CHANNEL_OPEN_OK)
        self.send(wire.method(CHANNEL, *SELECT, b"\0"))
        self.expect(SELECT_OK)

    def publish(self, exchange, routing_key, body, properties):
        """Publishes one persistent, mandatory message and waits for the answer: whether a queue has taken it."""
        mandatory = b"\x01"
        arguments = struct.pack(">H", 0) + wire.short(exchange) + wire.short(routing_key) + mandatory
        frames = [wire.method(CHANNEL, *PUBLISH, arguments), *wire.content(CHANNEL, body, properties, self.frame_max)]
        self.send(b"".join(frames))
        is_returned = False
        while True:
            what, _ = self.next_method()
            if what in (ACK, NACK):
                return what == ACK and not is_returned
            is_returned = is_returned or what == RETURN

    def close(self):
        try:
            self.send(wire.method(0, *CONNECTION_CLOSE, struct.pack(">H", 200) + wire.short("") + b"\0" * 4))
            self.expect(CONNECTION_CLOSE_OK)
        except (OSError, Refused):
            # Whatever it was, the connection is over.
            pass
        self.received.close()
        self.socket.close()

    def send(self, raw):
        self.socket.sendall(raw)

    def expect(self, wanted):
        what, arguments = self.next_method()
        if what != wanted:
            raise Refused(f"method {what} where {wanted} was due")
        return arguments

    def next_method(self):
        """The next method; the content of a returned message and heartbeats are passed over."""
        while True:
            kind, _, size = struct.unpack(">BHI", self.read(7))
            payload, end = self.read(size), self.read(1)
            if end != wire.FRAME_END:
                raise Refused("the broker's frame has no end")
            if kind != wire.METHOD:
                continue
            what = struct.unpack(">HH", payload[:4])
            if what in (CHANNEL_CLOSE, CONNECTION_CLOSE):
                code, length = struct.unpack(">HB", payload[4:7])
                told = payload[7 : 7 + length].decode(errors="replace")
                if code == CONNECTION_FORCED:
                    raise ConnectionResetError(told)
                raise Refused(f"{'channel' if what == CHANNEL_CLOSE else 'connection'} closed, {code} {told}")
            return what, payload[4:]

    def read(self, size):
        raw = self.received.read(size)
        if len(raw) < size:
            raise ConnectionResetError("the broker ended the connection without a word")
        return raw
