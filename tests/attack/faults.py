"""Faults from outside: a flipped bit in the memory of a process, and a disk with hardly any room."""
import contextlib
import ctypes
import os
import re
import struct

import formats


def needle(model):
    """Bytes of a saved model to look for in memory: numbers that nothing else holds."""
    header, body = formats.read_safetensors(model)
    tensors = [header[name] for name in sorted(header) if name != "__metadata__"]
    largest = max(tensors, key=lambda tensor: tensor["data_offsets"][1] - tensor["data_offsets"][0])
    begin = largest["data_offsets"][0]
    return body[begin:begin + 64]


def places(pid, pattern):
    """Where the pattern stands in the private memory of a process."""
    found = set()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            span = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw-p", line)
            begin, end = (int(number, 16) for number in span.groups()) if span else (0, 0)
            if not 0 < end - begin < 1 << 30:
                continue
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except (OSError, OverflowError):
                continue
            at = content.find(pattern)
            while at >= 0:
                found.add(begin + at)
                at = content.find(pattern, at + 1)
    return found


def flip_exponent(pid, place):
    """Flips the highest bit of the exponent of the number that stands there."""
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(place)
        number = struct.unpack("<I", memory.read(4))[0] ^ (1 << 30)
        memory.seek(place)
        memory.write(struct.pack("<I", number))


@contextlib.contextmanager
def small_disk(folder, kibibytes):
    """A file system of that size at the folder, in a mount namespace of our own. Yields False where that needs more
    rights than we have."""
    new_mounts, private, recursive, detach = 0x20000, 1 << 18, 1 << 14, 2
    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs(folder, exist_ok=True)
    allowed = os.geteuid() == 0 and libc.unshare(new_mounts) == 0
    allowed = allowed and libc.mount(b"none", b"/", None, private | recursive, None) == 0
    allowed = allowed and libc.mount(b"attack", folder.encode(), b"tmpfs", 0, f"size={kibibytes}k".encode()) == 0
    try:
        yield allowed
    finally:
        if allowed:
            libc.umount2(folder.encode(), detach)
