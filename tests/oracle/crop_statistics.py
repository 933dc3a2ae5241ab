#!/usr/bin/env python3
"""How torchvision's RandomResizedCrop draws its parts, for data/augment.h to be compared with.

    /usr/bin/python3 tests/oracle/crop_statistics.py FOLDER

runs torchvision's own get_params(), read from FOLDER/torchvision/transforms/transforms.py (0.29;
`pip download --no-deps torchvision` and unzip), which needs PyTorch's generator and no more of it.
Writes tests/testdata/oracle/crop_statistics.txt, a line for each size of a picture:

    width height   mean and deviation of   area / whole   width / height   left   top

of 100,000 parts, scale (0.08, 1), ratio (3/4, 4/3), torch.manual_seed(1).
"""

import ast
import math
import pathlib
import sys
import types

import torch

SIZES = [(350, 270), (32, 32), (90, 200)]
DRAWS = 100_000


def get_params_of(folder):
    source = (pathlib.Path(folder) / "torchvision/transforms/transforms.py").read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and node.name == "RandomResizedCrop":
            method = next(m for m in node.body if getattr(m, "name", "") == "get_params")
            method.decorator_list, method.returns = [], None
            for argument in method.args.args:
                argument.annotation = None
            dimensions = types.SimpleNamespace(get_dimensions=lambda image: (3, *image))
            names = {"torch": torch, "math": math, "F": dimensions}
            exec(compile(ast.Module([method], []), "torchvision", "exec"), names)
            return names["get_params"]
    raise SystemExit("there is no RandomResizedCrop.get_params in " + str(folder))


def main():
    get_params = get_params_of(sys.argv[1])
    torch.manual_seed(1)
    torch.set_num_threads(1)
    lines = []
    for width, height in SIZES:
        draws = torch.tensor([get_params((height, width), (0.08, 1.0), (3 / 4, 4 / 3))
                              for _ in range(DRAWS)], dtype=torch.float64)
        top, left, h, w = draws.unbind(1)
        numbers = []
        for values in (h * w / (width * height), w / h, left, top):
            numbers += [values.mean().item(), values.std(unbiased=False).item()]
        lines.append(f"{width} {height} " + " ".join(f"{number:.6g}" for number in numbers) + "\n")
    folder = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "oracle"
    (folder / "crop_statistics.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
