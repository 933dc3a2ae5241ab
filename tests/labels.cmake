# What tests are called beside their rooms' names. CI's steps (.ci/run) choose by these labels, and so can you:
#
#   scripts/test -LE '^(slow|pages)$'        all but these
#   ctest --test-dir build/release -N -L '^clock$'
#
# labelled(LABEL REGEX) gives the label to each test whose name the regular expression finds. A row that finds none, and
# a test that no step of CI runs, are errors (scripts/check_steps).

# Under sanitizers these only take long, and what they run, others run too: one strategy and pass of the oracle has all of
# its code and threads. The table of all messages starts the program 150 times; the fuzzers see more of its readers.
# Children with a limit of memory, which sanitizers do not keep to.
labelled(slow "^Checker[.]")
labelled(slow "Torchrun|MessageSources|Messages|Writers|WrongLines|Help[.]")
# Each collective's program for each format; EachCollective has the same code.
labelled(slow "^(Nccl|Osu)Format[.]")
labelled(slow "Oracle.*(naive|doubling|accumulate2|/1_|/3_)")
labelled(slow "TrainingOracleBits|TrainingOracle.*/(exact|one_nchw)")
labelled(slow "AtAnyStepIsAsIfNeverStopped/(exact_|fast_1)|InFlight.*/[15]|AnyOptimizer.*/adamw")
labelled(slow "InAnyExchange|BetweenProcesses.*(gloo|_5x1|_2x3)")
labelled(slow "resnet18_cifar|Oracle.*iresnet18|EveryModel.*resnet[1-9]|smooth_sign")
# Two runs for each point where a run can be killed. EpochEnd's other tests have the same code.
# Starts itself four times by mpirun; the other meshes have the same code.
labelled(slow "MeshOverMpi")
# All strategies on many machines, by the same code as Play's other tests.
labelled(slow "Play[.]HasTwoLevelPicked")
labelled(slow "(EpochEnd|Verifying)[.]IsToldOnceWhereverTheRunIsKilled")
# Smaller models, fewer classes have the same code.
labelled(slow "StagesMemory[.]OfResNets|StagesTest.*/i?resnet18_(nchw|lanes_bf16)|Margin[.]SamplesBitForBitIn")

# Twenty processes at once, of which half wait. Those that are killed there have the same code.
labelled(slow "DyingStage")

# They count the processor's time, which sanitizers take as well.
labelled(clock "SpinNowhere|GivesWay|PlayOf4096Ranks")
# Busy loops beside the benchmark, twenty times.
labelled(clock "BesideBusyLoops")
# They compare a forecast with the time that a run takes.
labelled(clock "StageRehearsal[.](Measures|Forecasts)")

# Rooms whose other tests see no clock, no second process and no file but their data: these have the label `timeless`, and
# scripts/test remembers their green results (scripts/lib/remembered.sh).
set(timeless_rooms kernels nn data)

# Browsers and Python, which sanitizers do not see into, and where a program's output goes.
labelled(pages "Report|Export|TensorBoard|StandardOutput")

# Loops in vectors, compiled without sanitizers; what is around them runs as lanes_portable too.
labelled(vectors "lanes_avx")

# Suites of many small cases, none of which forks, changes the environment or counts memory or time. To start a sanitizer's
# test program costs more than such a case, so scripts/test runs up to 20 of a suite in one process there.
labelled(together "^(Strategies/AllReduceTest|Splits/SplitTest|Of/Operations|Over/TwoLevel)[.]")
labelled(together "^(Ways/Grid|Setups/Reduce|Nets/GradientTest|Nets/EquivalenceTest|Nets/PlanTest|TapeTest|Cases/OpTest)[.]")
labelled(together "^(LayoutsAndDepths/EveryLoader|Idx|IdxDirectory|Image|PrepareImage|Sizes/Bijection|Cases/LinearMatmul)[.]")
labelled(together "^(All/BrokenModelInfo|Safetensors|Cuda/CudaPrecision)[.]")

# About numbers alone: the thread sanitizer sees the same threads in others.
labelled(bits "Resume|ExactMode|Evaluate|SteadyState|FashionMnist|Setups/Reduce|Clipping|LoadModel")
labelled(bits "/FacesIn[.]|Uneven.*(_of_40|_of_130|_of_608)|TrainingOracle.*/(one|four)|AnyOptimizer|NarrowTraining.*/bf16")
labelled(bits "BestTest[.]IsTheSame|StagesRun[.]HasTheBitsOfOneStage(ForOtherModels)?$|StagesMemory[.]OfLeNet|HeadBehindANorm")
# Schedules are recorded and played on one thread.
labelled(bits "^(Play|Schedule)[.]")
labelled(bits "Replicas/Oracle.*nchw|ResNetOracle.*nchw")

# For GPUs; scripts/test --preset stand-in runs them without one.
labelled(gpu "[Cc]uda|StepNodes")

# On a stand-in for GPUs, these have their plans from the real cuDNN (tests/cuda_stand_in/planner.h). The others start it
# in vain, which takes a quarter of a second.
labelled(planner "Setups/Conv2d[.].*cuda|StepNodes[.]OfLenet(InNhwc)?AreFew|ExactModeOnCuda")
labelled(planner "^Cuda/Oracle.*cuda_graph_1_nhwc_accumulate1|CudaPrecision.*Learns.*/bf16_(lenet|normed)_nhwc")

# On a stand-in for GPUs, these say nothing (how much a real library holds) or only take long.
labelled(real_gpu "CudaLibraries[.]SayWhat")
labelled(real_gpu "Oracle.*(naive|doubling|accumulate2|cuda_4)")

# Where nvcc's kernels are run instruction by instruction (--preset ptx), these only take long: the rest of the room has each
# kernel, in each type. StepNodes and CudaNccl's graphs ask for names that are the stand-in's own.
labelled(host_kernels "TrainingOracle.*/cuda|Oracle.*cuda_(2|graph_1_nchw)|PrecisionOracle.*(resnet18|f16|_2_)|SteadyState")
labelled(host_kernels "CudaVerifying")
labelled(host_kernels "CudaFacesIn|CudaNccl|CudaPeerAccess|CudaFaults|CudaStepNotes|StepNodes|ExactModeOnCuda|CudaPrecision.*(AnyReplicas|/f16)|CudaNhwc.*(heads|two)")
