// The real cuDNN as a planner. It needs no GPU for that: one is described to it. Where
// RINGLET_STAND_IN_PLANNER=cudnn, each descriptor of the stand-in (but packs) has a twin there.
//
// It is loaded by a program of its own (planner_main.cc), which is asked over pipes: in one process
// with the stand-in it would open that one's cuBLASLt.
#pragma once

#include <cudnn_graph.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace ringlet::stand_in {

/// Whether the variable says so now.
bool wants_real_plans();

/// What the planner is asked; `bytes` follow. Twins are descriptors of the planner's process.
struct Question {
  enum Call : std::int32_t { create, destroy, set, get, finalize, explain };
  Call call = create;
  std::int32_t name = 0;   ///< of the attribute; to create: the kind of descriptor
  std::int32_t type = 0;   ///< of the attribute's values
  std::int32_t aimed = 0;  ///< to finalize: the name of the attribute that gets the GPU, or 0
  cudnnBackendDescriptor_t twin = nullptr;
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

/// `bytes` follow.
struct Answer {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::int64_t count = 0;
  cudnnBackendDescriptor_t twin = nullptr;  ///< that was created
  std::int64_t bytes = 0;
};

/// Asks, with `values` of question.bytes, which the answer's bytes replace; null where there are
/// none. The first call starts the planner. Throws std::runtime_error where it ends. Any thread.
Answer ask(const Question& question, void* values);

/// What the planner says of its last failure.
std::string last_refusal();

}  // namespace ringlet::stand_in
