"""`ringlet bench train` of ResNets with batch norm, in each precision, captured, with what the GPU notes of itself. PyTorch's are
torch_peer.py's."""

import json

from gpu.process import Failed

CASES = (("resnet18-cifar", 256, "3x32x32", 2048), ("resnet18", 128, "3x224x224", 1024))  # batch, shape of an image, images: whole batches
REHEARSED = (("resnet20", 8, "3x32x32", 16),)
PRECISIONS = ("tf32", "bf16", "f32", "f16")


def cases(rehearsal):
    """Model, batch, shape, images, precision, layout (auto: nhwc where tensor cores are used), and whether engines are timed: what is
    compared with PyTorch first."""
    if rehearsal:
        return [(*case, precision, "auto", False) for case in REHEARSED for precision in ("f32", "bf16")]
    others = (("f32", "nhwc", False), ("bf16", "auto", True), ("tf32", "auto", True), ("f32", "nhwc", True), ("tf32", "nchw", False))
    return ([(*case, precision, "auto", False) for case in CASES for precision in PRECISIONS] +
            [(*case, *other) for other in others for case in CASES])


def check(context):
    rows = context.figures["rows"] = []
    result = context.folder / "bench.json"
    steps = (1, 2) if context.rehearsal else (10, 40)
    for model, batch, shape, images, precision, layout, autotune in cases(context.rehearsal):
        flags = ["--precision", precision, "--layout", layout, *(["--autotune"] if autotune else [])]
        if context.rehearsal and precision == "bf16":
            flags.append("--emulate-precision")
        try:
            context.run([context.program("ringlet"), "bench", "train", "--model", model, "--data", "random:" + shape,
                         "--synthetic-train", images, "--synthetic-test", 8, "--batch-size", batch, "--device", context.device,
                         "--warm-up", steps[0], "--steps", steps[1], *flags, "--json", result, "--force"], context.seconds(60))
            figures = json.loads(result.read_text(encoding="utf-8"))
        except (Failed, KeyError, ValueError) as failure:
            context.red(f"{model} {precision} {layout}: {failure}")
            continue
        rows.append({"who": "ringlet", "model": model, "batch": batch, "image_shape": figures["image_shape"],
                     "precision": precision, "mode": "graph", "layout": figures["layout"], "autotune": autotune,
                     "milliseconds": 1e3 * figures["median_seconds"],
                     "samples_per_second": figures["samples_per_second"], "first_step_seconds": figures.get("first_step_seconds"),
                     "device_notes": figures.get("device_notes")})
        context.save()
