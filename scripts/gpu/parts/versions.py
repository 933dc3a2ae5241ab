"""Whether the driver and the libraries are there, and fit together."""

import json

from gpu.paths import late_folders


def check(context):
    context.figures["late_folders"] = late_folders()
    _, output = context.run([context.program("ringlet"), "devices", "--json"], 40)
    survey = json.loads(output[output.index("{"):])
    context.figures["survey"] = survey
    cuda = survey["cuda"]
    if "versions" not in cuda:
        context.red("this build has no CUDA")
        return
    for library in ("cublas", "cudnn", "nccl"):
        if not cuda["versions"].get(library) and not context.rehearsal:
            context.red(f"{library} was not found; LD_LIBRARY_PATH may name its folder")
    if not cuda["devices"] and not context.rehearsal:
        context.red("ringlet devices sees no GPU: " + str(cuda.get("why_none")))
