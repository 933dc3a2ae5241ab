// The benchmark's answer in a sentence.
#pragma once

#include <string>

#include "bench/all_reduce/comparison.h"

namespace ringlet::app::report {

/// Which of the first engine's strategies to take: "two-shot from 8 KiB, 3.1 times as fast as the
/// ring at 32 KiB; doubling up to 4 KiB". One that takes at most a tenth longer than the fastest
/// counts as fast: measured again, it may be the other way round.
std::string answer_of(const bench::Comparison& comparison);

}  // namespace ringlet::app::report
