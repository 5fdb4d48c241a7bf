#!/usr/bin/python3
"""Prints the polynomial coefficients of src/kernels/simd/math-inl.h (needs numpy and mpmath).

Each is a weighted minimax fit, found by Lawson's iteration on a Chebyshev grid, rounded to float.
"""
import numpy as np
import mpmath as mp
from numpy.polynomial import Chebyshev, Polynomial, chebyshev

mp.mp.dps = 40


def minimax(function, weight, lo, hi, degree, points=1500, rounds=60):
    """The Chebyshev coefficients on [lo, hi] that minimise max |fit - function| * weight, and that maximum."""
    t = np.cos(np.pi * (np.arange(points) + 0.5) / points)
    x = (t + 1) / 2 * (hi - lo) + lo
    y = np.array([float(function(mp.mpf(v))) for v in x])
    w = np.array([float(weight(v)) for v in x])
    basis, lawson = chebyshev.chebvander(t, degree), np.ones(points)
    best = (np.inf, None)
    for _ in range(rounds):
        row = np.sqrt(lawson) * w
        c = np.linalg.lstsq(basis * row[:, None], y * row, rcond=None)[0]
        error = np.abs((basis @ c - y) * w)
        best = min(best, (error.max(), tuple(c)))
        lawson *= error / error.max() + 1e-12
        lawson /= lawson.sum()
    return best


def show(name, error, coefficients):
    print(f"{name}: error {error:.1e}\n  " + ", ".join(f"{float(np.float32(c))!r}f" for c in coefficients))


def in_x(name, function, weight, lo, hi, degree):
    """Coefficients of powers of x itself."""
    error, c = minimax(function, weight, lo, hi, degree)
    show(name, error, Chebyshev(c, domain=[lo, hi]).convert(kind=Polynomial).coef)


def odd_in_t(name, function, edge, degree):
    """function(x) / x as a polynomial of t = 2 x^2 / edge^2 - 1."""
    tiny = mp.mpf("1e-9")
    ratio = lambda z: function(mp.sqrt(z) or tiny) / (mp.sqrt(z) or tiny)
    error, c = minimax(ratio, lambda z: np.sqrt(z) + 1e-2, 0, edge * edge, degree, points=3000)
    show(name, error, chebyshev.cheb2poly(c))


half = float(mp.log(2) / 2) * 1.0005
in_x("(exp(r) - 1 - r) / r^2", lambda r: (mp.exp(r) - 1 - r) / r**2 if abs(r) > 1e-6 else mp.mpf(1) / 2 + r / 6,
     lambda r: r * r + 1e-4, -half, half, 4)
in_x("(atanh(s) / s - 1) / s^2, s^2 up to 1/9",
     lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > 1e-12 else mp.mpf(1) / 3,
     lambda z: z + 1e-3, 0, 1 / 9 + 1e-4, 3)
phi = lambda x: mp.erf(x / mp.sqrt(2)) / 2
odd_in_t("Phi(x) - 1/2", phi, 5.2, 14)
odd_in_t("gelu'(x) - 1/2", lambda x: phi(x) + x * mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi), 5.8, 17)
