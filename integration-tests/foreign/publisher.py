"""Publishes with confirms until each message is confirmed, over as many connections as it takes."""

import time
from collections import Counter, deque

import pika
from pika.exceptions import AMQPError, ChannelClosedByBroker

RETURNED_RETRY_SECONDS = 0.5
RECONNECT_SECONDS = 0.3


class Publisher:
    """Keeps up to `window` messages unconfirmed. When the connection breaks, all of these are sent again under the
    same ids: the broker may have taken some, so that duplicates come about as in the field.
    """

    def __init__(self, url, exchange, routing_key, messages, count, window, rate, deadline, patience, progress):
        self.parameters = pika.URLParameters(url)
        self.parameters.heartbeat = 10
        self.parameters.socket_timeout = 5
        self.exchange, self.routing_key = exchange, routing_key
        self.messages, self.waiting, self.count = messages, deque(range(count)), count
        self.window, self.rate, self.progress = window, rate, progress
        self.patience, self.ends_at = patience, time.monotonic() + deadline
        self.starts_at = time.monotonic()
        self.unconfirmed, self.returned, self.resting = {}, set(), set()
        self.sent, self.confirmed = Counter(), Counter()
        self.connections = self.returns = self.nacks = self.started = 0
        self.connection = self.channel = self.timer = self.reason = None

    def run(self):
        """Returns whether all messages are confirmed."""
        while not self.is_done() and time.monotonic() < self.ends_at:
            self.one_connection()
            if not self.is_done():
                self.progress(self, f"disconnected={self.reason}")
                time.sleep(RECONNECT_SECONDS)
        return self.is_done()

    def is_done(self):
        return len(self.confirmed) == self.count

    def one_connection(self):
        self.reason = None
        self.connection = pika.SelectConnection(
            self.parameters,
            on_open_callback=lambda connection: connection.channel(on_open_callback=self.on_channel),
            on_open_error_callback=self.on_closed,
            on_close_callback=self.on_closed,
        )
        self.answered_at = time.monotonic()
        self.watch()
        try:
            self.connection.ioloop.start()
        except AMQPError:
            # pika raises what happens within its own callbacks while a connection breaks.
            pass
        self.channel = self.timer = None
        self.waiting.extendleft(reversed(self.unconfirmed.values()))
        self.waiting.extend(self.resting)
        for kept in (self.unconfirmed, self.returned, self.resting):
            kept.clear()

    def watch(self):
        """Gives a connection up on which the broker answers nothing, though it lives."""
        now, loop = time.monotonic(), self.connection.ioloop
        if now >= self.ends_at:
            loop.stop()
        elif now >= self.answered_at + self.patience and self.reason is None:
            self.reason = "no-answer"
            if self.connection.is_open:
                self.connection.close()
            else:
                loop.stop()
        loop.call_later(0.5, self.watch)

    def on_closed(self, connection, reason):
        if self.reason is None:
            self.reason = type(reason).__name__
        connection.ioloop.stop()

    def on_channel(self, channel):
        channel.add_on_close_callback(self.on_channel_closed)
        channel.add_on_return_callback(lambda _c, _m, properties, _b: self.returned.add(properties.headers["seq"]))
        channel.confirm_delivery(self.on_confirm, callback=lambda _: self.on_ready(channel))

    def on_ready(self, channel):
        self.channel, self.next_tag = channel, 1
        self.connections += 1
        self.publish_more()

    def on_channel_closed(self, channel, reason):
        self.channel = None
        if isinstance(reason, ChannelClosedByBroker):
            self.reason = f"channel-closed-{reason.reply_code}"
        if channel.connection.is_open:
            channel.connection.close()

    def publish_more(self):
        while self.channel and self.channel.is_open and self.waiting and len(self.unconfirmed) < self.window:
            if self.is_too_early():
                self.timer = self.timer or self.connection.ioloop.call_later(0.01, self.on_timer)
                return
            seq = self.waiting.popleft()
            message = self.messages[seq]
            self.unconfirmed[self.next_tag] = seq
            self.next_tag += 1
            self.sent[seq] += 1
            self.started += 1
            self.channel.basic_publish(
                self.exchange, self.routing_key, message.body, message.properties, mandatory=True
            )

    def on_timer(self):
        self.timer = None
        self.publish_more()

    def is_too_early(self):
        return self.rate and self.started > (time.monotonic() - self.starts_at) * self.rate

    def on_confirm(self, frame):
        method, tag = frame.method, frame.method.delivery_tag
        self.answered_at = time.monotonic()
        tags = [t for t in self.unconfirmed if t <= tag] if method.multiple else [tag]
        for seq in [self.unconfirmed.pop(tag) for tag in tags]:
            self.settle(seq, isinstance(method, pika.spec.Basic.Ack))
        if self.is_done():
            self.connection.close()
        self.publish_more()

    def settle(self, seq, positive):
        if positive and seq not in self.returned:
            self.confirmed[seq] += 1
            self.progress(self, None)
            return
        # No queue took it, or the queue refused it: an acknowledged return is no success.
        self.returns += positive
        self.nacks += not positive
        self.returned.discard(seq)
        self.resting.add(seq)
        self.connection.ioloop.call_later(RETURNED_RETRY_SECONDS, lambda: self.on_rested(seq))

    def on_rested(self, seq):
        self.resting.remove(seq)
        self.waiting.append(seq)
        self.publish_more()
