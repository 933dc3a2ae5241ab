"""Whether the driver and the libraries are there, and fit together; and how long starting takes."""

import json
import time

from gpu.paths import late_folders


def check(context):
    context.figures["late_folders"] = late_folders()
    seconds = context.figures["seconds_of"] = {}
    begin = time.monotonic()
    context.run([context.program("ringlet"), "--version"], context.seconds(40))
    seconds["start"] = round(time.monotonic() - begin, 3)
    begin = time.monotonic()
    _, output = context.run([context.program("ringlet"), "devices", "--json"], context.seconds(40))
    seconds["start, driver and libraries"] = round(time.monotonic() - begin, 3)
    survey = json.loads(output[output.index("{"):])
    context.figures["survey"] = survey
    cuda = survey["cuda"]
    if "versions" not in cuda:
        context.red("this build has no CUDA")
        return
    for library in ("cublas", "cudnn", "nccl"):
        if not cuda["versions"].get(library) and not context.rehearsal:
            context.red(f"{library} was not found; LD_LIBRARY_PATH may name its folder")
    # cuDNN compiles fused convolutions with it, and opens it by itself.
    nvrtc = f"libnvrtc.so.{cuda['versions'].get('runtime', '13').split('.')[0]}"
    status, _ = context.run(["python3", "-c", f"import ctypes; ctypes.CDLL('{nvrtc}')"], 40, check=False)
    context.figures["nvrtc"] = status == 0
    if status != 0 and not context.rehearsal:
        context.red(f"{nvrtc} was not found, which cuDNN needs for fused convolutions; LD_LIBRARY_PATH may name its folder")
    if not cuda["devices"] and not context.rehearsal:
        context.red("ringlet devices sees no GPU: " + str(cuda.get("why_none")))
