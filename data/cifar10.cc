#include "data/cifar10.h"

#include <fstream>
#include <string>
#include <vector>

#include "base/data_error.h"
#include "data/memory_dataset.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kCifarPixels = 3 * 32 * 32, kCifarRecord = kCifarPixels + 1;
constexpr int kCifarClasses = 10;

const std::vector<std::string>& cifar10_classes() {
  static const std::vector<std::string> names{"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"};
  return names;
}

struct CifarSplit {
  std::vector<std::uint8_t> images;
  std::vector<std::int32_t> labels;
};

void read_batch(const fs::path& file, std::int64_t records, CifarSplit& split) {
  const auto expected = static_cast<std::uintmax_t>(records * kCifarRecord);
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(file, error);
  if (error || bytes != expected) {
    throw DataError(file.string() + ": expected " + std::to_string(expected) + " bytes, " +
                    std::to_string(records) + " records of " + std::to_string(kCifarRecord) +
                    ", found " + (error ? "none" : std::to_string(bytes)) +
                    "; fetch it again: the binary version of CIFAR-10");
  }
  std::vector<std::uint8_t> content(expected);
  std::ifstream stream(file, std::ios::binary);
  stream.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(expected));
  if (!stream) throw DataError(file.string() + ": cannot be read; check its permissions");
  for (std::int64_t i = 0; i < records; ++i) {
    const auto record = content.begin() + i * kCifarRecord;
    if (*record >= kCifarClasses) {
      throw DataError(file.string() + ": record " + std::to_string(i) + " has the label " +
                      std::to_string(*record) + ", and there are ten classes; fetch it again");
    }
    split.labels.push_back(*record);
    split.images.insert(split.images.end(), record + 1, record + kCifarRecord);
  }
}

fs::path folder_of_batches(const fs::path& directory) {
  if (directory.empty()) {
    throw DataError(
        "CIFAR-10 is looked for nowhere: name the folder of data_batch_1.bin to data_batch_5.bin "
        "and test_batch.bin with --data-dir");
  }
  std::error_code error;
  const fs::path inner = directory / "cifar-10-batches-bin";
  return fs::is_directory(inner, error) ? inner : directory;
}

std::shared_ptr<const Dataset> as_dataset(const std::string& split, CifarSplit content) {
  return std::make_shared<const MemoryDataset>(
      DatasetInfo{.name = std::string(kCifar10Name) + "/" + split,
                  .channels = 3,
                  .height = 32,
                  .width = 32,
                  .target_names = cifar10_classes(),
                  .photographs = true},
      std::move(content.images), std::move(content.labels));
}

}  // namespace

Splits load_cifar10(const fs::path& directory, std::int64_t records) {
  const fs::path folder = folder_of_batches(directory);
  constexpr int kBatches = 5;
  std::vector<fs::path> files;
  for (int i = 1; i <= kBatches; ++i) {
    files.push_back(folder / ("data_batch_" + std::to_string(i) + ".bin"));
  }
  files.push_back(folder / "test_batch.bin");
  std::string missing;
  std::error_code error;
  for (const fs::path& file : files) {
    if (!fs::exists(file, error))
      missing += (missing.empty() ? "" : ", ") + file.filename().string();
  }
  if (!missing.empty()) {
    throw DataError(folder.string() + ": missing " + missing +
                    "; put the files of CIFAR-10's binary version there");
  }
  CifarSplit train, test;
  read_batch(files.back(), records, test);
  files.pop_back();
  for (const fs::path& file : files) read_batch(file, records, train);
  return {as_dataset("train", std::move(train)), as_dataset("test", std::move(test))};
}

}  // namespace ringlet::data
