"""Networks in Python. A layer is a function; calling it on values makes the graph, which `Network` hands to `train`.

    from echelon import nn

    net = nn.sequential(nn.conv2d(16, kernel=3), nn.relu(), nn.flatten(), nn.linear(10))

    x = nn.input()                                   # the same, as a graph with a branch
    a = nn.relu()(nn.conv2d(16, kernel=3, padding=1)(x))
    b = nn.conv2d(16, kernel=3, padding=1)(a)
    net = nn.Network(nn.linear(10)(nn.flatten()(nn.add()(a, b))))

    echelon.train({"model": net, ...}, data=(pictures, labels))

There is a function for every kind of layer of a recipe (docs/recipes.md), with the same settings; nn.pyi lists them.
"""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Sequence

from . import _core


class Value:
    """What a layer makes of other values, or the network's input."""

    def __init__(self, layer: "Layer | None", inputs: "Sequence[Value]", name: str) -> None:
        self.layer = layer
        self.inputs = tuple(inputs)
        self.name = name

    def __add__(self, other: "Value") -> "Value":
        return add()(self, other)  # type: ignore[name-defined]  # noqa: F821

    def __mul__(self, other: "Value") -> "Value":
        return multiply()(self, other)  # type: ignore[name-defined]  # noqa: F821


class Layer:
    """One layer with its settings; call it on values to put it into a graph."""

    def __init__(self, type: str, settings: Dict[str, Any], least: int, most: int) -> None:
        self.type = type
        self.settings = settings
        self.least = least
        self.most = most

    def __call__(self, *inputs: Value) -> Value:
        if not self.least <= len(inputs) <= self.most:
            wanted = str(self.least) if self.least == self.most else f"{self.least} or more"
            raise TypeError(f"nn.{self.type} reads {wanted} value{'s' if wanted != '1' else ''}, not {len(inputs)}")
        return Value(self, inputs, self.settings.get("name", ""))

    def __repr__(self) -> str:
        return f"nn.{self.type}({', '.join(f'{k}={v!r}' for k, v in self.settings.items())})"


def input(name: str = "input") -> Value:
    """The network's input. Data with several inputs name them."""
    return Value(None, (), name)


class Network:
    """A graph of layers, from its output back to its inputs. Hand it to `train` as the recipe's model."""

    def __init__(self, output: Value) -> None:
        self.output = output

    def table(self) -> Dict[str, Any]:
        """The recipe's [model] table that builds this network."""
        order: List[Value] = []
        _collect(self.output, order)
        layers: List[Dict[str, Any]] = []
        names = _names_of(order)
        before = None  # what a layer reads that does not say it: the layer before, or the network's input
        for value in order:
            if value.layer is None:
                continue
            layer = {"type": value.layer.type, **value.layer.settings}
            if id(value) in names:
                layer["name"] = names[id(value)]
            if len(value.inputs) > 1:
                layer["inputs"] = [names[id(v)] for v in value.inputs]
            elif value.inputs[0] is not before and (before or value.inputs[0].name != "input"):
                layer["input"] = names[id(value.inputs[0])]
            layers.append(layer)
            before = value
        return {"name": "layers", "layers": layers}


def _names_of(order: Sequence[Value]) -> Dict[int, str]:
    """The names of inputs, of layers that were given one, and of those that something else than the next layer reads.
    Other layers have none, as in a recipe: the random numbers that weights begin with depend on their names."""
    taken = {v.name for v in order if v.name} | {"input"}
    names = {id(v): v.name for v in order if v.name}
    layers = [v for v in order if v.layer is not None]
    for position, reader in enumerate(layers):
        for value in reader.inputs:
            is_before = position > 0 and value is layers[position - 1] and len(reader.inputs) == 1
            if id(value) in names or is_before:
                continue
            number = 1
            while f"{value.layer.type}{number}" in taken:  # type: ignore[union-attr]
                number += 1
            names[id(value)] = f"{value.layer.type}{number}"  # type: ignore[union-attr]
            taken.add(names[id(value)])
    return names


def _collect(output: Value, order: List[Value]) -> None:
    """Every value before those that read it; without recursion, because networks are deep."""
    seen, stack = set(), [(output, False)]
    while stack:
        value, ready = stack.pop()
        if ready:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((v, False) for v in reversed(value.inputs))


def sequential(*layers: Layer) -> Network:
    """Layers one after the other, from the network's input."""
    value = input()
    for layer in layers:
        value = layer(value)
    return Network(value)


def _keys_of(text: str) -> List[str]:
    """The names in "out, bias = true, ..."; what stands in brackets, and after a semicolon, is for people."""
    return [part.split("=")[0].strip() for part in _parts_of(text)]


def _parts_of(text: str) -> List[str]:
    plain = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", text.split(";")[0])
    return [part.strip() for part in plain.split(",") if part.split("=")[0].strip().isidentifier()]


def _layer_function(kind: str, keys: str, least: int, most: int) -> Callable[..., Layer]:
    known = _keys_of(keys)

    def make(*values: Any, **settings: Any) -> Layer:
        if len(values) > 1 or (values and not known):
            raise TypeError(f"nn.{kind} takes {'its first setting' if known else 'nothing'} without a name; the "
                            f"settings are: {keys or 'none'}")
        if values:
            settings = {known[0]: values[0], **settings}
        return Layer(kind, settings, least, most)

    make.__name__ = make.__qualname__ = kind
    make.__doc__ = f"The layer {kind}. Settings: {keys or 'none'}."
    return make


__all__ = ["Layer", "Network", "Value", "input", "sequential"]
for _kind, _keys, _least, _most in _core.layer_kinds():
    globals()[_kind] = _layer_function(_kind, _keys, _least, _most)
    __all__.append(_kind)
