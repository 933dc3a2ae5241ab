#!/usr/bin/env python3
"""How exact Winograd's convolution F(4x4, 3x3) is in f32, for some points at which it may evaluate,
beside a sum of all products in order. Errors are relative to the results' deviation: root mean
square, and the largest. Needs numpy.

  tests/oracle/winograd_points.py
"""
from fractions import Fraction

import numpy as np

OUTPUTS, WEIGHTS, INPUTS = 4, 3, 6


def polynomial(roots):
    """Coefficients of the product of (x - root), from the constant on."""
    result = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0)] + result
        result = [a - root * b for a, b in zip(shifted, result + [Fraction(0)])]
    return result


def matrices(points):
    """A^T, G and B^T for these points and infinity."""
    at = [[point**i for point in points] + [int(i == OUTPUTS - 1)] for i in range(OUTPUTS)]
    g, bt = [], []
    for point in points:
        others = [other for other in points if other != point]
        scale = np.prod([point - other for other in others])
        g.append([point**k / scale for k in range(WEIGHTS)])
        bt.append(polynomial(others) + [Fraction(0)])
    g.append([int(k == WEIGHTS - 1) for k in range(WEIGHTS)])
    bt.append(polynomial(points))
    return (np.array(m, dtype=object).astype(np.float32) for m in (at, g, bt))


def errors(got, wanted):
    difference = (got - wanted) / wanted.std()
    return f"{np.sqrt((difference**2).mean()):.1e} {abs(difference).max():.1e}"


def compare(points, channels, tiles=200):
    at, g, bt = matrices([Fraction(p) for p in points])
    random = np.random.default_rng(0)
    x = random.standard_normal((tiles, channels, INPUTS, INPUTS)).astype(np.float32)
    w = random.standard_normal((channels, WEIGHTS, WEIGHTS)).astype(np.float32)
    u = (g @ w @ g.T).astype(np.float32)
    v = (bt @ x @ bt.T).astype(np.float32)
    sums = np.zeros((tiles, INPUTS, INPUTS), np.float32)
    for c in range(channels):
        sums = sums + u[c] * v[:, c]
    y = (at @ sums @ at.T).astype(np.float32)

    wanted = np.zeros((tiles, OUTPUTS, OUTPUTS))
    in_order = np.zeros((tiles, OUTPUTS, OUTPUTS), np.float32)
    for c in range(channels):
        for p in range(WEIGHTS):
            for q in range(WEIGHTS):
                window = x[:, c, p : p + OUTPUTS, q : q + OUTPUTS]
                wanted += window.astype(np.float64) * float(w[c, p, q])
                in_order = in_order + window * w[c, p, q]
    name = ", ".join(str(p) for p in points)
    print(f"{channels:4} channels  in order {errors(in_order, wanted)}   {errors(y, wanted)}  {name}")


for count in (64, 512):
    for choice in ("0 1 -1 2 -2", "0 1 -1 1/2 -1/2", "0 1 -1 1/2 -2", "0 3/4 -3/4 3/2 -3/2"):
        compare(choice.split(), count)
