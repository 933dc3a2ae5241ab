#!/usr/bin/env python3
"""How many pictures a second Pillow decodes and resizes on one processor; beside pictures_bench.

    python3 bench/peers/pictures.py FOLDER [ROUNDS]

The same work, by the thread's own processor time, the best of the rounds.
"""

import io
import pathlib
import sys
import time

from PIL import Image

SIZE = 224


def best_seconds(rounds, work):
    best = None
    for _ in range(rounds):
        begin = time.thread_time()
        work()
        seconds = time.thread_time() - begin
        best = seconds if best is None else min(best, seconds)
    return best


def decoded(content):
    return Image.open(io.BytesIO(content)).convert("RGB")


def cut(image):
    width, height = image.size
    edge, short = SIZE * 8 // 7, min(width, height)
    image = image.resize((edge * width // short, edge * height // short), Image.BILINEAR)
    left, top = round((image.width - SIZE) / 2), round((image.height - SIZE) / 2)
    return image.crop((left, top, left + SIZE, top + SIZE))


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    files = [path.read_bytes() for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.jpg"))]
    decode = best_seconds(rounds, lambda: [decoded(content).size for content in files])
    both = best_seconds(rounds, lambda: [cut(decoded(content)).size for content in files])
    one = Image.new("RGB", (350, 270))
    resize = best_seconds(rounds * 100, lambda: one.resize((SIZE, SIZE), Image.BILINEAR))
    print(f"{len(files)} pictures")
    print(f"decoded                         {len(files) / decode:8.0f} a second")
    print(f"decoded, resized, cut to {SIZE}    {len(files) / both:8.0f} a second")
    print(f"350 x 270 resized to {SIZE} x {SIZE}  {1e3 * resize:8.3f} ms")


if __name__ == "__main__":
    main()
