"""The manifest: what was published, for whoever checks what became of it.

{"seed", "queue", "messages": [{"seq", "id", "kind", "orderId", "sha256", "bytes", "headers", "sent", "confirmed"}]}

seq        number of the message, also its header `seq`; the only name that a message without id has
id         message_id as sent: null where absent; "idHex" besides where it is no UTF-8
kind       order | empty (body of no bytes) | no-id (absent, "" or three spaces)
orderId    null for empty
sha256     of the body
headers    name of the family of headers or, for raw messages, of the case
sent       times it was handed to a connection: at most so many copies are in the queue
confirmed  copies that the broker has confirmed: at least so many are, or were, in the queue
"""

import json
import os
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(path, manifest):
    """All or nothing: a reader never sees half a manifest."""
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(manifest, file, ensure_ascii=False, indent=1)
    os.replace(f"{path}.part", path)


def say(text):
    """A line that another program can wait for."""
    print(text, flush=True)


def fail(text):
    print(f"error: {text}", file=sys.stderr, flush=True)
    return 1
