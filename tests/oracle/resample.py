#!/usr/bin/env python3
"""What Pillow makes of a picture that it crops and resizes, for data/images/resample.h to equal.

    python3 tests/oracle/resample.py                     writes tests/testdata/oracle/resample.txt
    python3 tests/oracle/resample.py IN OUT NUMBERS...   resizes the raw RGB file IN into OUT

NUMBERS are those of a line of the text file without its last word:

    width height   left top width height   width height   pixels
    of the image   of the crop             of the result  [height, width, RGB], in hexadecimal

The image is noise, so that a tap too many or a weight beside its pixel shows:

    pixel i of width * height * 3:  mix(i + 1) % 256
    mix(v)                          v ^= v >> 16; v *= 0x7feb352d; v ^= v >> 15; v *= 0x846ca68b;
                                    v ^= v >> 16, on unsigned 32-bit integers ("lowbias32")

Pillow up to 11 goes along the rows first, and so does Ringlet. Pillow 13 goes down the columns first where
a picture is made wider and less high at once, which is then off by one level. So this resizes in two calls,
rows first, which gives the pixels of Pillow 11 with any Pillow. Without Pillow the exit status is 77.
"""

import pathlib
import sys

try:
    from PIL import Image
except ImportError:
    sys.exit(77)

CASES = [
    (13, 9, 0, 0, 13, 9, 5, 4),
    (5, 4, 0, 0, 5, 4, 13, 9),
    (31, 20, 3, 5, 17, 11, 8, 8),
    (31, 20, 0, 0, 31, 20, 12, 16),
    (7, 7, 0, 0, 7, 7, 7, 7),
    (9, 12, 8, 11, 1, 1, 3, 2),
    (64, 3, 0, 0, 64, 3, 5, 1),
    (3, 90, 1, 0, 2, 90, 2, 4),
    (40, 30, 0, 0, 40, 30, 22, 16),
    (24, 24, 2, 1, 20, 21, 10, 33),
]


def mix(value):
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        value ^= value >> shift
        value = value * factor & 0xFFFFFFFF
    return value ^ value >> 16


def resized(pixels, width, height, left, top, crop_width, crop_height, to_width, to_height):
    image = Image.frombytes("RGB", (width, height), pixels)
    image = image.crop((left, top, left + crop_width, top + crop_height))
    rows = image.resize((to_width, crop_height), Image.BILINEAR)
    return rows.resize((to_width, to_height), Image.BILINEAR).tobytes()


def main():
    if len(sys.argv) > 1:
        source, result = sys.argv[1:3]
        numbers = [int(word) for word in sys.argv[3:]]
        pathlib.Path(result).write_bytes(resized(pathlib.Path(source).read_bytes(), *numbers))
        return
    lines = []
    for case in CASES:
        noise = bytes(mix(i + 1) % 256 for i in range(case[0] * case[1] * 3))
        lines.append(" ".join(map(str, case)) + " " + resized(noise, *case).hex() + "\n")
    folder = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "oracle"
    (folder / "resample.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
