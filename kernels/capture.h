// capture(): what a callable enqueues, as a graph.
#pragma once

#include <memory>

#include "kernels/stream.h"

namespace ringlet {

/// Ends the capture of a stream, which can neither be waited for nor have its memory freed
/// meanwhile, and forgets the graph.
inline void end_broken_capture(Stream& stream) noexcept {
  try {
    stream.end_capture();
  } catch (...) {  // says what is known: the capture is worth nothing
  }
}

/// See Stream::begin_capture(). Throws what `enqueue` throws, and DeviceError.
template <class Enqueue>
std::unique_ptr<Graph> capture(Stream& stream, Enqueue& enqueue) {
  stream.begin_capture();
  try {
    enqueue();
  } catch (...) {
    end_broken_capture(stream);
    throw;
  }
  return stream.end_capture();
}

}  // namespace ringlet
