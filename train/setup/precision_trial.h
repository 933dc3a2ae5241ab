// Steps of a run before it begins, in a narrow type and in f32: which one is faster where it runs.
//
// A run of the same model, recipe and execution is set up for each type in turn, on its own devices
// and threads, with samples that are noise and a learning rate of 0, and makes a few steps. Nothing
// is left of it: no number, file or trace of the run that follows depends on it, but for the type
// that `--precision auto` takes. The source stands in train/, which knows the loop and its threads.
//
//   where       on processors all replicas of the first process, together as in the run; on GPUs
//               its first one alone. A model in stages is timed whole, on the first device
//   a step      one pass of each replica, as large as the run's passes; on processors of fewer
//               samples, sixteen at least, where they would take more than about a second
//   how many    one that does not count, on a GPU three (the libraries' plans, the capture); then
//               two, or more in a third of a second. A first one that takes more than two seconds
//               is the only one
//
// Where it fails, as for want of memory, that is said, and the run goes on.
#pragma once

#include <cstdint>
#include <string>

#include "comm/core/group.h"
#include "train/setup/precision_times.h"
#include "train/setup/run_setup.h"

namespace ringlet::train {

/// bf16 or f16 beside f32. Of `setup` it takes what stands before the layout: make_run_setup()
/// itself calls this. In a world of several processes the first one times, and tells the others,
/// which all call this; without `group` nothing is timed there.
PrecisionTimes time_precisions(const RunSetup& setup, Precision narrow, comm::Group* group);

/// Samples of a replica in a timed step on processors: `samples`, or fewer in blocks of sixteen.
std::int64_t samples_to_time(std::int64_t samples, double flops_of_sample, int threads);

struct PrecisionChoice {
  Precision taken = Precision::f32;
  std::string told{};  ///< "--precision bf16: ...", and why
};

/// What `--precision auto` takes: bf16 where it is clearly faster, else f32. Never f16 or tf32,
/// which ask more of a recipe than a step's time.
PrecisionChoice choose_precision(const RunSetup& setup, comm::Group* group);

/// Whether a run that begins in bf16 or f16, as somebody has said, is to be timed: not where it
/// emulates these, and not where it has few steps, which could not win back what the timing takes.
bool wants_timing(const RunSetup& setup);

/// What a run's user should know of its type beside f32. Empty unless wants_timing().
std::string told_of_precision(const RunSetup& setup, comm::Group* group);

}  // namespace ringlet::train
