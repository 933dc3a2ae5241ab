"""Builds from source: what the other parts start. With --no-build there is nothing to do."""

import re
import shutil
import time

from gpu.machine import gpu_query


def check(context):
    root, build = context.root, context.paths.build
    carried = (root / ".carry" / "debs").is_dir() or shutil.which("apt-get") is None
    context.run([root / "scripts" / "setup", *(["--carried"] if carried else [])], 300)
    context.paths.forget_environment()
    capability = gpu_query("compute_cap")
    architecture = capability[0].replace(".", "") if capability else "90"
    context.run(["cmake", "-S", root, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DRINGLET_CUDA=ON",
                 f"-DCMAKE_CUDA_ARCHITECTURES={architecture}",
                 f"-DCMAKE_EXE_LINKER_FLAGS={context.env.get('LDFLAGS', '')}"], 90)
    context.figures["architecture"] = architecture
    start = time.monotonic()
    _, output = context.run(["cmake", "--build", build, "--target", "ringlet", "kernel_floors", "kernels_tests", "nn_tests",
                             "comm_tests", "train_tests"], 3600)
    context.figures["seconds_to_compile"] = round(time.monotonic() - start, 1)
    context.figures["steps"] = len(re.findall(r"^\[\d+/\d+\]", output, re.MULTILINE))
