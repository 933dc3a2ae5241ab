"""The parts, the most telling and the cheap first."""

from gpu.parts import all_reduce, build, floors, nccl, profile, resnets, runs, tests, timings, torch_peer, versions
from gpu.parts.part import Part

PARTS = [
    Part("build", build.check, usual=200, limit=420, needs="the sources"),
    Part("versions", versions.check, usual=5, limit=60),
    Part("kernels", tests.room("kernels", "*uda*:*Cudnn*:*Cublas*"), usual=30, limit=240),
    Part("oracle", tests.room("train", "Cuda/*:ExactModeOnCuda.*:CudaNccl*:CudaStages.*"), usual=30, limit=240),
    Part("transports", tests.room("comm", "*Cuda*"), usual=15, limit=90),
    Part("timings", timings.check, usual=120, limit=360),
    Part("torch", torch_peer.eager, usual=55, limit=120),
    Part("profile", profile.check, usual=30, limit=90),
    Part("floors", floors.check, usual=15, limit=60),
    Part("demo", runs.demo, usual=15, limit=60),
    Part("exact", runs.exact, usual=15, limit=120),
    Part("nccl", nccl.check, usual=30, limit=120),
    Part("all-reduce", all_reduce.check, usual=30, limit=90),
    Part("resnets", resnets.check, usual=60, limit=240),
    Part("torch-resnets", torch_peer.resnets, usual=45, limit=240),
    # In calls of their own: each may take minutes.
    Part("races", tests.races, usual=65, limit=120, by_default=False),
    Part("memcheck", tests.sanitizer("memcheck"), usual=200, limit=540, by_default=False),
    Part("racecheck", tests.sanitizer("racecheck"), usual=200, limit=540, by_default=False),
    Part("initcheck", tests.sanitizer("initcheck"), usual=60, limit=240, by_default=False),
    Part("synccheck", tests.sanitizer("synccheck"), usual=60, limit=240, by_default=False),
    Part("torch-compiled", torch_peer.compiled, usual=120, limit=540, by_default=False),
    Part("cpu", tests.without_gpu, usual=120, limit=540, by_default=False),
]
