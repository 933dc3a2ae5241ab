#!/usr/bin/env python3
"""Draws a small set of pictures in folders, to try recipes on: ten shapes in any colour, size and
turn, before blots of other colours, with noise.

    draw_shapes.py OUT [--train 400] [--test 1000] [--size 96] [--seed 1]

writes OUT/train/SHAPE/N.png and OUT/test/SHAPE/N.png, a tenth of each number for each shape. The
pictures follow from the seed. Needs numpy and Pillow."""
import argparse
import math
import pathlib

import numpy
from PIL import Image, ImageDraw

SHAPES = ["arrow", "bars", "cross", "disc", "halfmoon", "hexagon", "ring", "square", "star", "triangle"]


def polygon(points, centre, radius, turn):
    """Points in units of the radius, turned and moved."""
    c, s = math.cos(turn), math.sin(turn)
    return [(centre[0] + radius * (x * c - y * s), centre[1] + radius * (x * s + y * c)) for x, y in points]


def regular(corners, inner=None):
    """A regular polygon, or a star whose inner corners lie at `inner`."""
    points = []
    for i in range(corners if inner is None else 2 * corners):
        angle = 2 * math.pi * i / (corners if inner is None else 2 * corners)
        r = inner if inner is not None and i % 2 else 1
        points.append((r * math.sin(angle), -r * math.cos(angle)))
    return points


OUTLINES = {
    "arrow": [(0, -1), (0.7, -0.1), (0.25, -0.1), (0.25, 1), (-0.25, 1), (-0.25, -0.1), (-0.7, -0.1)],
    "cross": [(-0.3, -1), (0.3, -1), (0.3, -0.3), (1, -0.3), (1, 0.3), (0.3, 0.3), (0.3, 1), (-0.3, 1),
              (-0.3, 0.3), (-1, 0.3), (-1, -0.3), (-0.3, -0.3)],
    "hexagon": regular(6),
    "square": [(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)],
    "star": regular(5, 0.4),
    "triangle": regular(3),
}


def mask_of(shape, size, rng):
    """Where the shape is: an image of one channel."""
    scale = 4  # drawn larger, for smooth edges
    mask = Image.new("L", (size * scale, size * scale), 0)
    draw = ImageDraw.Draw(mask)
    radius = size * scale * rng.uniform(0.14, 0.34)
    reach = size * scale - radius
    centre = (rng.uniform(radius, reach), rng.uniform(radius, reach))
    turn = rng.uniform(-math.pi, math.pi)

    def disc(r, fill, dx=0.0, dy=0.0):
        x, y = centre[0] + dx, centre[1] + dy
        draw.ellipse([x - r, y - r, x + r, y + r], fill=fill)

    if shape in OUTLINES:
        draw.polygon(polygon(OUTLINES[shape], centre, radius, turn), fill=255)
    elif shape == "bars":
        for k in (-0.8, 0.0, 0.8):
            bar = [(k - 0.18, -0.9), (k + 0.18, -0.9), (k + 0.18, 0.9), (k - 0.18, 0.9)]
            draw.polygon(polygon(bar, centre, radius, turn), fill=255)
    else:
        disc(radius, 255)
        if shape == "ring":
            disc(0.55 * radius, 0)
        if shape == "halfmoon":
            disc(0.85 * radius, 0, 0.55 * radius * math.cos(turn), 0.55 * radius * math.sin(turn))
    return mask.resize((size, size), Image.Resampling.LANCZOS)


def colour(rng):
    return tuple(int(c) for c in rng.integers(0, 256, 3))


def picture(shape, size, rng):
    ground = Image.new("RGB", (size, size), colour(rng))
    draw = ImageDraw.Draw(ground)
    for _ in range(int(rng.integers(2, 7))):
        x, y = rng.uniform(0, size, 2)
        w, h = rng.uniform(0.1, 0.6, 2) * size
        draw.ellipse([x - w / 2, y - h / 2, x + w / 2, y + h / 2], fill=colour(rng))
    ground.paste(Image.new("RGB", (size, size), colour(rng)), mask=mask_of(shape, size, rng))
    noisy = numpy.asarray(ground, numpy.float32) + rng.normal(0, rng.uniform(4, 24), (size, size, 3))
    return Image.fromarray(noisy.clip(0, 255).astype(numpy.uint8))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--train", type=int, default=400)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    rng = numpy.random.default_rng(flags.seed)
    for part, count in (("train", flags.train), ("test", flags.test)):
        for shape in SHAPES:
            folder = flags.out / part / shape
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(count // len(SHAPES)):
                picture(shape, flags.size, rng).save(folder / f"{i:04}.png")
    print(f"drew {flags.train} and {flags.test} pictures of {len(SHAPES)} shapes in {flags.out}")


if __name__ == "__main__":
    main()
