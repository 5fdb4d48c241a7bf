"""Data for `echelon.train`: arrays where they lie in memory, and data sets that are written in Python."""
from __future__ import annotations

import hashlib
from typing import Any, Optional, Sequence

import numpy as np

from . import _core

Dataset = _core.Dataset


def _array(value: Any, name: str) -> np.ndarray:
    """A NumPy view of whatever holds numbers: nothing is copied where the numbers of a sample lie side by side."""
    if type(value).__module__.split(".")[0] == "torch":
        value = value.detach().cpu().numpy()  # shares the tensor's memory
    array = np.asarray(value)
    if array.dtype == np.float16 or array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("=") if array.dtype != np.float16 else np.float32)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: an array of {array.dtype} holds no numbers")
    if array.ndim and len(array) and not array[0].flags.c_contiguous or array.ndim and array.strides[0] < 0:
        array = np.ascontiguousarray(array)
    return array


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array_interface__") or hasattr(value, "__array__") or isinstance(value, list)


def dataset(data: Any, *, input: str = "automatic", channels_last: bool = False, scale: Optional[float] = None,
            classes: int = 0, class_names: Sequence[str] = ()) -> Dataset:
    """Makes a data set of

    - ``(x, y)``: two arrays or tensors, read where they lie. Whole numbers in ``y`` are classes, others are numbers
      to be predicted. Keep the arrays as they are while they train;
    - ``x``: one array, for models that need no targets;
    - an object with ``__len__`` and ``__getitem__``, whose samples are pairs ``(x, y)``. It may have the attributes
      ``classes``, ``class_names`` and ``fingerprint`` (a text that changes when the data do).

    ``input`` says what ``x`` is: "image", "features" or "tokens"; "automatic" takes uint8 and three dimensions for
    images. uint8 is scaled by 1/255 unless ``scale`` says otherwise. ``channels_last``: images are [height, width,
    channels].
    """
    if isinstance(data, Dataset):
        return data
    if isinstance(data, tuple) and len(data) == 2:
        x, y = _array(data[0], "x"), _array(data[1], "y")
        return _core.arrays(x, y, input, channels_last, scale, classes, list(class_names))
    if _is_array(data):
        return _core.arrays(_array(data, "x"), None, input, channels_last, scale, classes, list(class_names))
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise TypeError(f"a {type(data).__name__} is no data: give arrays (x, y), or an object with __len__ and "
                        "__getitem__")
    return _from_object(data, input, classes, class_names)


def _from_object(data: Any, input: str, classes: int, class_names: Sequence[str]) -> Dataset:
    if len(data) == 0:
        raise ValueError("the data set has no samples")
    first = data[0]
    pair = isinstance(first, (tuple, list)) and len(first) == 2
    x = np.asarray(first[0] if pair else first)
    if input == "automatic":
        input = "image" if x.ndim == 3 else "features"
    fields = [({"tokens": "tokens", "image": "image"}.get(input, "features"), "i32" if input == "tokens" else "f32",
               list(x.shape))]
    digest = hashlib.sha256(f"{type(data).__qualname__} {len(data)} {x.dtype} {x.shape}".encode())
    class_names = list(class_names or getattr(data, "class_names", ()))
    if pair:
        y = np.asarray(first[1])
        whole = y.dtype.kind in "iub"
        shape = [] if y.shape == (1,) else list(y.shape)
        fields.append(("target", "f32", shape) if not whole else ("targets" if shape else "label", "i32", shape))
        if whole:
            classes = classes or len(class_names) or int(getattr(data, "classes", 0)) or _count_classes(data)
    given = getattr(data, "fingerprint", None)
    if given is not None:
        digest.update(str(given() if callable(given) else given).encode())
    else:  # a look at some samples; `fingerprint` does better
        for i in sorted({i * (len(data) - 1) // 15 for i in range(16)}):
            for part in data[i] if pair else [data[i]]:
                digest.update(np.ascontiguousarray(part).tobytes())
    return _core.python_dataset(data, fields, classes if pair else 0, class_names, digest.hexdigest())


def _count_classes(data: Any) -> int:
    """One pass over the data; the attribute `classes` saves it."""
    return 1 + max(int(np.max(data[i][1])) for i in range(len(data)))
