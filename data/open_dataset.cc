#include "data/open_dataset.h"

#include <filesystem>

#include "data/error.h"
#include "data/fashion_mnist.h"
#include "data/idx_dataset.h"
#include "data/synthetic.h"

namespace ringlet::data {

Splits open_dataset(const std::string& name, const OpenOptions& options) {
  if (name == "fashion-mnist") return load_fashion_mnist(options.directory);
  if (name == "synthetic") {
    return make_synthetic(
        {options.synthetic_train, options.synthetic_test, options.synthetic_seed});
  }
  std::error_code error;
  if (std::filesystem::is_directory(name, error)) return load_idx_directory(name);
  throw DataError(
      "--data " + name +
      ": not a data set: expected fashion-mnist, synthetic or a directory of IDX files");
}

}  // namespace ringlet::data
