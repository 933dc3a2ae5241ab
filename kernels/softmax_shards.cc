#include "kernels/softmax_shards.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

namespace {

void require_shard(const char* name, const ConstView& logits, const ConstView& labels,
                   const ConstView& rows) {
  require_rank(name, logits, 2);
  require_dense(name, logits, logits.shape());
  require_labels(name, labels, logits);
  require_dense(name, rows, Shape{logits.shape()[0], 3});
}

}  // namespace

void softmax_shard_forward(Stream& stream, ConstView logits, ConstView labels, std::int64_t first,
                           View part) {
  constexpr const char* kName = "softmax_shard_forward";
  require_shard(kName, logits, labels, part);
  const Work work{kName, 4.0 * static_cast<double>(logits.count()), total_bytes(logits, part)};
  dispatch(stream, work, impl::any::softmax_shard_forward, logits, labels, first, part);
}

void softmax_shards_merge(Stream& stream, ConstView parts, View merged) {
  constexpr const char* kName = "softmax_shards_merge";
  require_rank(kName, parts, 3);
  require_dense(kName, parts, parts.shape());
  require_dense(kName, merged, Shape{parts.shape()[1], 3});
  const Work work{kName, 2.0 * static_cast<double>(parts.count()), total_bytes(parts, merged)};
  dispatch(stream, work, impl::any::softmax_shards_merge, parts, merged);
}

void softmax_shards_loss(Stream& stream, ConstView merged, View loss, View sum) {
  constexpr const char* kName = "softmax_shards_loss";
  require_rank(kName, merged, 2);
  require_dense(kName, merged, Shape{merged.shape()[0], 3});
  require_dense(kName, loss, Shape{1});
  if (!sum.absent()) require_dense(kName, sum, Shape{1});
  const Work work{kName, static_cast<double>(merged.shape()[0]), total_bytes(merged, loss)};
  dispatch(stream, work, impl::any::softmax_shards_loss, merged, loss, sum);
}

void softmax_shard_backward(Stream& stream, ConstView logits, ConstView labels, std::int64_t first,
                            ConstView merged, ConstView dloss, float beta, View dlogits) {
  constexpr const char* kName = "softmax_shard_backward";
  require_shard(kName, logits, labels, merged);
  require_dense(kName, dloss, Shape{1});
  require_dense(kName, dlogits, logits.shape());
  const Work work{kName, 4.0 * static_cast<double>(logits.count()), total_bytes(logits, dlogits)};
  dispatch(stream, work, impl::any::softmax_shard_backward, logits, labels, first, merged, dloss,
           beta, dlogits);
}

}  // namespace ringlet
