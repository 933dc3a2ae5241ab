#include "comm/transport/gloo/gloo_collectives.h"

#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/reduce.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "comm/all_reduce/collectives.h"
#include "comm/core/transport.h"
#include "kernels/reduce.h"

namespace ringlet::comm {

namespace {

using Reduce = std::function<void(void*, const void*, const void*, std::size_t)>;

/// y = op(a, b), by the kernels with which every strategy reduces.
Reduce reduce_function(Stream& stream, ReduceOp op, DType dtype) {
  return [&stream, op = operation_of(combine_of(op)), dtype](void* y, const void* a, const void* b,
                                                             std::size_t count) {
    const Shape shape{static_cast<std::int64_t>(count)};
    const ConstView xs[] = {{a, shape, dtype}, {b, shape, dtype}};
    const View ys[] = {{y, shape, dtype}};
    reduce(stream, op, xs, ys);
  };
}

/// Gloo asks for a type but uses only its size.
template <class Options>
void set_output(Options& options, const View& data) {
  const auto count = static_cast<std::size_t>(data.count());
  if (size_of(data.dtype()) == sizeof(std::uint16_t)) {
    options.setOutput(static_cast<std::uint16_t*>(data.data()), count);
  } else {
    options.setOutput(static_cast<std::uint32_t*>(data.data()), count);
  }
}

template <class Options>
Options options_for(const std::shared_ptr<GlooContext>& context, const EngineCall& call) {
  Options options(context);
  set_output(options, call.data);
  options.setTimeout(call.timeout);
  return options;
}

}  // namespace

void gloo_all_reduce(const std::shared_ptr<GlooContext>& context, const EngineCall& call) {
  auto options = options_for<gloo::AllreduceOptions>(context, call);
  options.setReduceFunction(reduce_function(call.stream, call.op, call.data.dtype()));
  gloo::allreduce(options);
  finish_reduction(call.stream, call.data, call.op, context->size);
}

void gloo_reduce_and_broadcast(const std::shared_ptr<GlooContext>& context,
                               const EngineCall& call) {
  auto reducing = options_for<gloo::ReduceOptions>(context, call);
  reducing.setRoot(0);
  reducing.setReduceFunction(reduce_function(call.stream, call.op, call.data.dtype()));
  gloo::reduce(reducing);
  auto sending = options_for<gloo::BroadcastOptions>(context, call);
  sending.setRoot(0);
  gloo::broadcast(sending);
  finish_reduction(call.stream, call.data, call.op, context->size);
}

}  // namespace ringlet::comm
