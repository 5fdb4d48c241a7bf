"""Writers of the formats that the program reads, for valid files and for ones that lie. Standard library only."""
import io
import json
import struct
import tarfile
import zlib


def _png(header, body):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def png(width, height, rows=None, *, depth=8, colour=0, claim=None, tail=b""):
    """A picture of grey bytes; `claim` is the (width, height) that its header says instead."""
    rows = rows if rows is not None else [bytes(width)] * height
    said = claim or (width, height)
    header = struct.pack(">IIBBBBB", said[0] & 0xffffffff, said[1] & 0xffffffff, depth, colour, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    return _png(header, body) + tail


def noise_png(dice, side=8):
    return png(side, side, [dice.randbytes(side) for _ in range(side)])


def npy(kind, shape, raw, *, header=None):
    """kind: '<f4' and the like. `header` stands in for the dictionary."""
    text = header if header is not None else f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    body = text.encode()
    body += b" " * (63 - (10 + len(body)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body) & 0xffff) + body + raw


def idx(shape, raw, *, kind=8):
    """The format of MNIST: kind 8 is bytes."""
    return struct.pack(">BBBB", 0, 0, kind, len(shape)) + b"".join(struct.pack(">I", n & 0xffffffff) for n in shape) + raw


def tar(members):
    """An archive of (name, bytes), or of TarInfo and bytes for strange members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, body in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(body) if info.isreg() else 0
            archive.addfile(info, io.BytesIO(body) if info.isreg() else None)
    return out.getvalue()


def safetensors(header, body=b"", *, length=None):
    """`header` is a dictionary or text; `length` is what the file says of it."""
    text = (header if isinstance(header, str) else json.dumps(header)).encode()
    return struct.pack("<Q", (len(text) if length is None else length) & (2**64 - 1)) + text + body


def read_safetensors(raw):
    """(header, body) of a valid file."""
    length = struct.unpack("<Q", raw[:8])[0]
    return json.loads(raw[8:8 + length]), raw[8 + length:]


def deflated(first, block, times):
    """A raw deflate stream of `first` and then `block` so many times, made by packing the block once."""
    begin = zlib.compressobj(9, zlib.DEFLATED, -15)
    head = begin.compress(first) + begin.flush(zlib.Z_FULL_FLUSH)
    again = zlib.compressobj(9, zlib.DEFLATED, -15)
    once = again.compress(block) + again.flush(zlib.Z_FULL_FLUSH)
    last = zlib.compressobj(9, zlib.DEFLATED, -15)
    return head + once * times + last.flush()


def gzip_of_zeros(prefix, mebibytes):
    """A small .gz that begins with `prefix` and unpacks to so many mebibytes."""
    block, check = bytes(1 << 20), zlib.crc32(prefix)
    for _ in range(mebibytes):
        check = zlib.crc32(block, check)
    size = (len(prefix) + (mebibytes << 20)) & 0xffffffff
    return (b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + deflated(prefix, block, mebibytes) + struct.pack("<II", check, size))


def png_bomb(side):
    """A square of zeros: a few kilobytes that unpack to side * side bytes."""
    row, check = bytes(side + 1), 1
    for _ in range(side):
        check = zlib.adler32(row, check)
    body = b"\x78\xda" + deflated(b"", row, side) + struct.pack(">I", check)
    return _png(struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0), body)
