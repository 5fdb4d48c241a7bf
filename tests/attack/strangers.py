"""Hostile connections: many at once, each with its own bad behaviour, and how long the other side puts up with them."""
import functools
import hashlib
import hmac
import os
import selectors
import socket
import ssl
import struct
import time

SLOT = 200  # connections that are open at once


def hello(job, *, role=1, sender=-1, to=-1, version=3, nonce=None):
    """The first words of a launcher (role 1) or a rank (role 2)."""
    return struct.pack("<IHBBii", 0x48484345, version, role, 0, sender, to) + hashlib.sha256(job).digest() + (
        nonce or os.urandom(32))


@functools.cache
def tls_hello():
    """The first flight of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_bio(incoming, outgoing).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


A_LOT = memoryview(bytes(8 << 20))

BEHAVIOURS = {
    "silent": lambda dice: b"",
    "garbage": lambda dice: dice.randbytes(300),
    "http": lambda dice: b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "half a hello": lambda dice: hello(b"echelon")[:dice.randrange(1, 80)],
    "hello, then silence": lambda dice: hello(b"echelon"),
    "hello of a rank": lambda dice: hello(b"echelon", role=2, sender=dice.randrange(3), to=dice.randrange(3)),
    "another job": lambda dice: hello(b"other") + bytes(32),
    "another version": lambda dice: hello(b"echelon", version=dice.choice([0, 1, 2, 65535])),
    "wrong proof": lambda dice: hello(b"echelon") + dice.randbytes(32),
    "length 0": lambda dice: bytes(8) + bytes(100),
    "length 2^31": lambda dice: struct.pack("<Q", 2**31) + bytes(100),
    "length 2^64-1": lambda dice: b"\xff" * 8 + bytes(100),
    "tls": lambda dice: tls_hello(),
    "one byte a second": lambda dice: hello(b"echelon"),
    "a lot": lambda dice: A_LOT,
}


class Stranger:
    def __init__(self, port, behaviour, words):
        self.port, self.behaviour, self.born, self.closed = port, behaviour, time.monotonic(), None
        self.words, self.slow, self.due = words, behaviour.startswith("one byte a second"), self.born
        self.deaf = behaviour.startswith("reads nothing")
        self.socket = socket.socket()
        self.socket.setblocking(False)
        try:
            self.socket.connect(("127.0.0.1", port))
        except BlockingIOError:
            pass
        except OSError:
            self.end()

    def end(self):
        if self.closed is None:
            self.closed = time.monotonic()
            self.socket.close()

    def seconds(self):
        return self.closed - self.born

    def speak(self):
        now = time.monotonic()
        if not self.words or now < self.due:
            return
        sent = self.socket.send(self.words[:1] if self.slow else self.words)
        self.words = self.words[sent:]
        self.due = now + (1.0 if self.slow else 0.0)

    def hear(self):
        """Whether the connection still stands."""
        while True:
            if not self.socket.recv(4096):
                return False


def besiege(ports, count, limit, dice, *, kinds=None, behaviours=None, until=lambda: False, leave_after=None, slot=SLOT):
    """Makes `count` hostile connections to the ports. Each is watched until the other side ends it, or for `limit`
    seconds; with `leave_after` a stranger leaves by itself then. Returns [(behaviour, seconds, closed by the other side)]."""
    results, open_ones, made = [], set(), 0
    kinds = kinds or BEHAVIOURS
    names = sorted(behaviours or kinds)
    with selectors.DefaultSelector() as selector:
        while open_ones or (made < count and not until()):
            while made < count and len(open_ones) < slot and not until():
                name = names[made % len(names)]
                stranger = Stranger(dice.choice(ports), name, kinds[name](dice))
                made += 1
                if stranger.closed:
                    results.append((stranger.behaviour, stranger.seconds(), True))
                else:
                    open_ones.add(stranger)
                    selector.register(stranger.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, stranger)
            for key, events in selector.select(0.05):
                stranger = key.data
                try:
                    if events & selectors.EVENT_WRITE:
                        stranger.speak()
                        if not stranger.words:
                            if stranger.deaf:
                                selector.unregister(stranger.socket)
                                continue
                            selector.modify(stranger.socket, selectors.EVENT_READ, stranger)
                    gone = bool(events & selectors.EVENT_READ) and not stranger.deaf and not stranger.hear()
                except BlockingIOError:
                    gone = False
                except OSError:
                    gone = True
                if gone:
                    selector.unregister(stranger.socket)
                    stranger.end()
                    open_ones.discard(stranger)
                    results.append((stranger.behaviour, stranger.seconds(), True))
            now = time.monotonic()
            for stranger in [s for s in open_ones if now - s.born > (leave_after or limit)]:
                if stranger.socket in selector.get_map():
                    selector.unregister(stranger.socket)
                stranger.end()
                open_ones.discard(stranger)
                results.append((stranger.behaviour, stranger.seconds(), leave_after is not None or stranger.deaf))
            if any(stranger.slow for stranger in open_ones):
                time.sleep(0.01)  # a socket that one could always write to would keep this loop spinning
    return results


def rogue(port, secret, words, seconds=3.0):
    """A launcher that has the secret and, once let in, says `words`. Whether it was let in, and closed afterwards."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        first = hello(b"echelon")
        connection.sendall(first)
        answer = b""
        while len(answer) < 72:
            more = connection.recv(72 - len(answer))
            if not more:
                return False, True
            answer += more
        nonce = answer[8:40]
        parts = (b"dialler", first, nonce, b"")
        message = b"".join(struct.pack("<Q", len(part)) + part for part in parts)
        connection.sendall(hmac.new(secret, message, hashlib.sha256).digest())
        if connection.recv(1) != b"\x01":
            return False, True
        try:
            connection.sendall(words)
            while connection.recv(4096):
                pass
        except TimeoutError:
            return True, False
        except OSError:
            pass
        return True, True
