"""Declares what the publishers need, for runs without the consumer that owns it."""

import pika


def declare(url, exchange, queue, routing_key):
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    # Without a delivery limit: a consumer that dies has not failed the message.
    channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "quorum"})
    if exchange:
        channel.exchange_declare(exchange, exchange_type="topic", durable=True)
        channel.queue_bind(queue, exchange, routing_key)
    connection.close()
