// Finds which of several ways to compute the same is the fastest here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace ringlet {

class CudaStream;

/// True when candidates can be timed: the stream was asked to, and is not being captured.
bool may_autotune(const CudaStream& stream);

/// The memory that candidates write to.
struct TunedOutput {
  void* address = nullptr;
  std::int64_t bytes = 0;
  bool is_read = false;  ///< with beta != 0: it is put back in the end
};

/// The candidate, 0 to candidates - 1, whose time_of() is the least in a few rounds over all; one
/// that has none is passed over. 0 when none has one.
int fastest(int candidates, const std::function<std::optional<float>(int)>& time_of);

/// Runs launch(0), launch(1), ... launch(candidates - 1) a few times each, and returns the one with
/// the least time on the GPU; one that returns false cannot be launched. Returns 0 when none can.
/// The output is left undefined, or as it was where it is read. Blocks the host.
int fastest(CudaStream& stream, int candidates, const TunedOutput& output,
            const std::function<bool(int)>& launch);

}  // namespace ringlet
