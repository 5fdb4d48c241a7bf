"""An independent reader of TensorBoard event files: the TFRecord framing and the protobuf wire format, by hand.

    read_events.py DIRECTORY    prints [[step, wall_time, tag, value], ...] of all event files, in the order of their names
"""
import glob
import json
import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(raw):
    at = 0
    while at < len(raw):
        length, length_crc = struct.unpack_from("<QI", raw, at)
        assert masked(raw[at : at + 8]) == length_crc, "checksum of a length"
        data = raw[at + 12 : at + 12 + length]
        assert len(data) == length, "a torn record"
        (data_crc,) = struct.unpack_from("<I", raw, at + 12 + length)
        assert masked(data) == data_crc, "checksum of a record"
        yield data
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            assert kind == 5
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        yield number, value


def scalars(path):
    with open(path, "rb") as file:
        raw = file.read()
    for i, record in enumerate(records(raw)):
        event = dict(fields(record))
        if i == 0:
            assert event[3] == b"brain.Event:2", "the version comes first"
            continue
        for number, value in fields(event[5]):
            assert number == 1
            entry = dict(fields(value))
            yield [event[2], event[1], entry[1].decode(), entry[2]]


if __name__ == "__main__":
    found = []
    for name in sorted(glob.glob(os.path.join(sys.argv[1], "*tfevents*"))):
        found += scalars(name)
    print(json.dumps(found))
