#include "kernels/gather_batch.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void gather_batch(Stream& stream, const GatherSpec& spec, ConstView images, ConstView labels,
                  ConstView position, View y, View batch_labels) {
  constexpr const char* kName = "gather_batch";
  require_dtype(kName, images, DType::u8);
  require_layout(kName, images, Layout::nchw);
  require_rank(kName, images, 4);
  require_labels(kName, labels, images);
  require(images.shape()[0] == spec.sampler.size(), kName,
          "the sampler is for another number of samples than the data set has");
  require_position(kName, position);
  require_f32(kName, y);
  require_rank(kName, y, 4);
  require_shape(kName, y, images.shape().with_batch(y.shape()[0]));
  require_labels(kName, batch_labels, y);
  const Work work{kName, 2.0 * static_cast<double>(y.count()),
                  static_cast<double>(y.count()) + total_bytes(y, batch_labels, batch_labels)};
  dispatch(stream, work, impl::any::gather_batch, spec, images, labels, position, y, batch_labels);
}

}  // namespace ringlet
