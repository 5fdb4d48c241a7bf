"""An independent reader of safetensors files: nothing but the published layout, the standard library and numpy.

    read_safetensors.py FILE       prints one JSON object: metadata, and for every tensor dtype, shape, sum and sha256;
                                   and the weights hash by its definition in src/track/weights_hash.h
"""
import hashlib
import json
import struct
import sys

import numpy

DTYPES = {"F32": ("<f4", "f32"), "I32": ("<i4", "i32"), "U8": ("u1", "u8")}


def read(path):
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    data = raw[8 + length :]
    covered = 0
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        assert begin == covered, f"{name}: a gap or an overlap"
        covered = end
        tensors[name] = numpy.frombuffer(data[begin:end], DTYPES[entry["dtype"]][0]).reshape(entry["shape"])
    assert covered == len(data)
    return tensors, metadata


def weights_hash(tensors):
    digest = hashlib.sha256()
    for name in sorted(tensors, key=lambda n: n.encode()):
        t = tensors[name]
        dtype = next(ours for numpys, ours in DTYPES.values() if numpy.dtype(numpys) == t.dtype)
        digest.update(struct.pack("<Q", len(name.encode())) + name.encode() + dtype.encode())
        digest.update(struct.pack(f"<Q{t.ndim}Q", t.ndim, *t.shape))
        digest.update(t.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    found, meta = read(sys.argv[1])
    print(json.dumps({
        "metadata": meta,
        "weights_sha256": weights_hash(found),
        "tensors": {
            name: {
                "dtype": str(t.dtype),
                "shape": list(t.shape),
                "sum": float(t.astype(numpy.float64).sum()),
                "sha256": hashlib.sha256(t.tobytes()).hexdigest(),
            }
            for name, t in found.items()
        },
    }))
