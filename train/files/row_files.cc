#include "train/files/row_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/file_error.h"
#include "train/files/safetensors.h"

namespace ringlet::train {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void fail(const fs::path& file, const std::string& what) {
  throw FileError(
      fmt::format("{}: {}; copy the folder again as a whole, or go on from another state",
                  file.string(), what));
}

std::int64_t number_in(const fs::path& file, const std::map<std::string, std::string>& metadata,
                       const char* key) {
  const auto found = metadata.find(key);
  std::int64_t number = -1;
  if (found != metadata.end()) {
    const char* const end = found->second.data() + found->second.size();
    const auto [stopped, error] = std::from_chars(found->second.data(), end, number);
    if (error != std::errc() || stopped != end) number = -1;
  }
  if (number < 0) fail(file, fmt::format("its metadata have no number {}", key));
  return number;
}

/// "0001-of-0004.safetensors" says 4; 0: no such name.
int count_in(const std::string& name) {
  constexpr std::string_view kBefore = "-of-";
  const std::size_t at = name.find(kBefore);
  if (at == std::string::npos) return 0;
  int count = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + at + kBefore.size(), end, count);
  return error == std::errc() && std::string_view(stopped, end) == ".safetensors" ? count : 0;
}

}  // namespace

std::string row_file_name(int index, int count) {
  return fmt::format("{:04}-of-{:04}.safetensors", index + 1, count);
}

RowFiles::RowFiles(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    count = std::max(count, count_in(entry.path().filename().string()));
  }
  if (error || count == 0) {
    throw FileError(fmt::format(
        "{}: there are no files of rows here; the folder has to be one that every process sees",
        folder_.string()));
  }
  const fs::path index = folder_ / kIndexFile;
  metadata_ = SafetensorsStream(index).header().metadata;
  rows_ = number_in(index, metadata_, kAllRows);
  std::int64_t next = 0;
  for (int i = 0; i < count; ++i) {
    const fs::path path = folder_ / row_file_name(i, count);
    if (!fs::exists(path, error)) fail(path, "it is missing");
    File file = open(path);
    if (file.first != next) {
      fail(path,
           fmt::format("it begins at row {}, and the one before ends at {}", file.first, next));
    }
    next += file.rows;
    const std::int64_t columns = file.tensors.empty() ? 0 : file.tensors.back().spec.shape.back();
    if (i > 0 && columns != columns_) fail(path, "its rows are of another length than the others'");
    columns_ = columns;
    files_.push_back(std::move(file));
  }
  if (next != rows_) fail(folder_, fmt::format("there are {} rows of {}", next, rows_));
}

RowFiles::File RowFiles::open(const fs::path& path) {
  const SafetensorsStream stream(path);
  const SafetensorsHeader& header = stream.header();
  File file{path, 0, number_in(path, header.metadata, kFirstRow), 0, header.tensors};
  const auto weight = std::ranges::find_if(
      file.tensors, [](const StoredTensor& tensor) { return tensor.spec.name == kWeightTensor; });
  if (weight == file.tensors.end() || weight->spec.shape.size() != 2) {
    fail(path, fmt::format("it has no tensor '{}' of rows", kWeightTensor));
  }
  file.rows = weight->spec.shape[0];
  for (const StoredTensor& tensor : file.tensors) {
    const bool fits = tensor.spec.dtype == "F32" && !tensor.spec.shape.empty() &&
                      tensor.spec.shape[0] == file.rows && tensor.spec.shape.size() <= 2;
    if (!fits) fail(path, "its tensors are not f32 of the same rows");
  }
  std::swap(*weight, file.tensors.back());  // which read() does not mind
  file.data = fs::file_size(path) - std::ranges::max(file.tensors, {}, &StoredTensor::end).end;
  return file;
}

void RowFiles::match(std::int64_t rows, std::int64_t columns,
                     const std::vector<std::string>& tensors,
                     const std::vector<std::string>& one_number) const {
  if (rows != rows_ || columns != columns_) {
    throw FileError(
        fmt::format("{} has {} rows of {} numbers, and this model {} of {}; name a state "
                    "of the same model and classes",
                    folder_.string(), rows_, columns_, rows, columns));
  }
  for (const File& file : files_) {
    std::size_t found = 0;
    for (const StoredTensor& tensor : file.tensors) {
      const std::string& name = tensor.spec.name;
      const bool one = std::ranges::find(one_number, name) != one_number.end();
      const bool whole = std::ranges::find(tensors, name) != tensors.end();
      const bool fits =
          one ? tensor.spec.shape.size() == 1
              : whole && tensor.spec.shape.size() == 2 && tensor.spec.shape[1] == columns_;
      found += fits ? 1 : 0;
    }
    if (found != tensors.size() + one_number.size() || found != file.tensors.size()) {
      fail(file.path, "it does not have what this recipe's optimiser keeps of each row");
    }
  }
}

void RowFiles::read(const std::string& name, std::int64_t begin, std::int64_t end,
                    float* destination) const {
  for (const File& file : files_) {
    const std::int64_t first = std::max(begin, file.first);
    const std::int64_t last = std::min(end, file.first + file.rows);
    if (first >= last) continue;
    const auto tensor = std::ranges::find_if(
        file.tensors, [&](const StoredTensor& stored) { return stored.spec.name == name; });
    if (tensor == file.tensors.end()) fail(file.path, fmt::format("it has no '{}'", name));
    const std::int64_t columns = tensor->spec.shape.size() == 2 ? tensor->spec.shape[1] : 1;
    const std::int64_t bytes = columns * static_cast<std::int64_t>(sizeof(float));
    std::ifstream stream(file.path, std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(file.data + tensor->begin) +
                 (first - file.first) * bytes);
    stream.read(reinterpret_cast<char*>(destination + (first - begin) * columns),
                (last - first) * bytes);
    if (!stream) fail(file.path, "it cannot be read to its end");
  }
}

std::vector<float> RowFiles::weights() const {
  std::vector<float> values(static_cast<std::size_t>(rows_ * columns_));
  read(kWeightTensor, 0, rows_, values.data());
  return values;
}

}  // namespace ringlet::train
