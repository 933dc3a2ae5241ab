#include "kernels/row_sample.h"

#include "kernels/contract.h"
#include "kernels/devices/dispatch.h"
#include "kernels/implementations.h"

namespace ringlet {

void gather_rows(Stream& stream, ConstView matrix, ConstView rows, View gathered, View inverse) {
  constexpr const char* kName = "gather_rows";
  require_rank(kName, matrix, 2);
  require_dense(kName, matrix, matrix.shape());
  require_dtype(kName, rows, DType::i32);
  require_rank(kName, rows, 1);
  require_dense(kName, gathered, Shape{rows.shape()[0], matrix.shape()[1]});
  require_dense(kName, inverse, Shape{rows.shape()[0]});
  const Work work{kName, 2.0 * static_cast<double>(gathered.count()),
                  2 * total_bytes(gathered) + total_bytes(rows, inverse)};
  dispatch(stream, work, impl::any::gather_rows, matrix, rows, gathered, inverse);
}

void find_rows(Stream& stream, ConstView rows, ConstView labels, std::int64_t first,
               std::int64_t at, bool joins, View columns) {
  constexpr const char* kName = "find_rows";
  require_dtype(kName, rows, DType::i32);
  require_rank(kName, rows, 1);
  require_dtype(kName, labels, DType::i32);
  require_rank(kName, labels, 1);
  require_dtype(kName, columns, DType::i32);
  require(columns.shape() == labels.shape(), kName, "a label has a column");
  const Work work{kName, 0, total_bytes(rows, labels, columns)};
  dispatch(stream, work, impl::any::find_rows, rows, labels, first, at, joins, columns);
}

}  // namespace ringlet
