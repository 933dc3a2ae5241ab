#include "nn/row_major.h"

#include "kernels/host_copy.h"

namespace ringlet::nn {

namespace {

/// Matrices [rows, columns] one behind the other, each of them transposed.
std::vector<float> transposed(const float* from, std::int64_t matrices, std::int64_t rows,
                              std::int64_t columns) {
  std::vector<float> to(static_cast<std::size_t>(matrices * rows * columns));
  for (std::int64_t m = 0; m < matrices; ++m) {
    const float* const matrix = from + m * rows * columns;
    float* out = to.data() + m * rows * columns;
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < rows; ++r) *out++ = matrix[r * columns + c];
    }
  }
  return to;
}

}  // namespace

std::vector<float> to_rows(Stream& stream, const ConstView& view) {
  std::vector<float> memory(static_cast<std::size_t>(view.count()));
  copy_to_host(stream, view, memory.data());
  if (view.layout() != Layout::nhwc) return memory;
  const Shape& shape = view.shape();
  return transposed(memory.data(), shape[0], shape[2] * shape[3], shape[1]);
}

void from_rows(Stream& stream, const float* rows, const View& view) {
  if (view.layout() != Layout::nhwc) return copy_from_host(stream, rows, view);
  const Shape& shape = view.shape();
  const auto memory = transposed(rows, shape[0], shape[1], shape[2] * shape[3]);
  copy_from_host(stream, memory.data(), view);
}

}  // namespace ringlet::nn
