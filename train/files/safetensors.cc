#include "train/files/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/files/json_text.h"
#include "base/memory_limits.h"
#include "train/files/safetensors_header.h"
#include "train/files/safetensors_stream.h"

namespace ringlet::train {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "safetensors is little-endian; a big-endian machine needs its bytes swapped");

std::uint64_t words_for(std::uint64_t bytes) { return (bytes + 7) / 8; }

std::int64_t bytes_of(const TensorSpec& spec) {
  return std::accumulate(spec.shape.begin(), spec.shape.end(), safetensors_dtype_bytes(spec.dtype),
                         std::multiplies<>());
}

/// The tensors in the reference's order: wider dtypes first, then by name.
std::vector<const TensorToWrite*> in_file_order(const std::string& file,
                                                std::span<const TensorToWrite> tensors) {
  const auto fail = [&](const std::string& what) {
    throw FileError("cannot write " + file + ": " + what);
  };
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) {
    const TensorSpec& spec = tensor.spec;
    if (safetensors_dtype_rank(spec.dtype) < 0) {
      fail("tensor '" + spec.name + "': dtype '" + spec.dtype + "' is not known");
    }
    if (spec.name == "__metadata__") fail("a tensor may not be called __metadata__");
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) {
    const int rank_a = safetensors_dtype_rank(a->spec.dtype);
    const int rank_b = safetensors_dtype_rank(b->spec.dtype);
    return rank_a != rank_b ? rank_a > rank_b : a->spec.name < b->spec.name;
  });
  std::vector<std::string_view> names;
  for (const TensorToWrite* tensor : order) names.push_back(tensor->spec.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail("there are two tensors called '" + std::string(*twice) + "'");
  return order;
}

}  // namespace

SafetensorsFile::SafetensorsFile(const fs::path& path)
    : SafetensorsFile(SafetensorsStream(path), path) {}

SafetensorsFile::SafetensorsFile(SafetensorsStream stream, fs::path path) : path_(std::move(path)) {
  SafetensorsHeader& header = stream.header();
  metadata_ = std::move(header.metadata);

  // Each tensor starts at a multiple of 8 bytes here, whatever its offset in the file is.
  std::uint64_t words = 0;
  for (const StoredTensor& tensor : header.tensors) words += words_for(tensor.end - tensor.begin);
  if (words > usable_memory() / sizeof(std::uint64_t)) {
    throw FileError(
        fmt::format("{}: its tensors are larger than this machine's memory ({} bytes); name "
                    "weights of the same model",
                    path_.string(), usable_memory()));
  }
  storage_.resize(words);
  auto* at = reinterpret_cast<std::byte*>(storage_.data());
  for (StoredTensor& tensor : header.tensors) {
    const std::uint64_t bytes = tensor.end - tensor.begin;
    if (bytes > 0) stream.read(at, bytes);
    entries_.push_back({std::move(tensor.spec), {at, bytes}});
    at += 8 * words_for(bytes);
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) by_name_.emplace(entries_[i].spec.name, i);
  sum_ = stream.sum();
}

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

const SafetensorsFile::Entry& SafetensorsFile::require(std::string_view name,
                                                       std::string_view dtype) const {
  const Entry* entry = find(name);
  if (entry == nullptr) {
    throw FileError(fmt::format("{}: there is no tensor '{}'; fetch or save the file again",
                                path_.string(), name));
  }
  if (entry->spec.dtype != dtype) {
    throw FileError(
        fmt::format("{}: tensor '{}': expected dtype {}, found {}; fetch or save the file again",
                    path_.string(), name, dtype, entry->spec.dtype));
  }
  return *entry;
}

std::span<const float> SafetensorsFile::f32(std::string_view name) const {
  const auto bytes = require(name, "F32").bytes;
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const std::int64_t> SafetensorsFile::i64(std::string_view name) const {
  const auto bytes = require(name, "I64").bytes;
  return {reinterpret_cast<const std::int64_t*>(bytes.data()), bytes.size() / sizeof(std::int64_t)};
}

std::vector<std::string> SafetensorsFile::besides(std::span<const TensorSpec> expected) const {
  std::vector<std::string> surplus;
  for (const Entry& entry : entries_) {
    const bool wanted = std::any_of(expected.begin(), expected.end(), [&](const TensorSpec& spec) {
      return spec.name == entry.spec.name;
    });
    if (!wanted) surplus.push_back(fmt::format("{} {}", entry.spec.name, describe(entry.spec)));
  }
  return surplus;
}

void SafetensorsFile::match(std::span<const TensorSpec> expected, bool allow_surplus) const {
  std::vector<std::string> problems;
  for (const TensorSpec& wanted : expected) {
    const Entry* entry = find(wanted.name);
    if (entry == nullptr) {
      problems.push_back(fmt::format("missing {} {}", wanted.name, describe(wanted)));
    } else if (entry->spec.dtype != wanted.dtype || entry->spec.shape != wanted.shape) {
      problems.push_back(fmt::format("{}: expected {}, found {}", wanted.name, describe(wanted),
                                     describe(entry->spec)));
    }
  }
  for (const std::string& surplus :
       allow_surplus ? std::vector<std::string>() : besides(expected)) {
    problems.push_back("surplus " + surplus);
  }
  if (problems.empty()) return;
  constexpr std::size_t kMostNamed = 12;  // of a model's hundreds: the first, and the last
  if (problems.size() > kMostNamed) {
    const std::size_t left_out = problems.size() - kMostNamed;
    const auto first = problems.begin() + kMostNamed - 1;
    problems.erase(first, problems.end() - 1);
    problems.insert(problems.end() - 1, fmt::format("{} more", left_out));
  }
  throw FileError(fmt::format("{} does not fit: {}; name weights of the same model", path_.string(),
                              on_one_line(fmt::format("{}", fmt::join(problems, "; ")))));
}

SafetensorsWriter::SafetensorsWriter(const fs::path& path, std::span<const TensorSpec> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  SafetensorsHeader header{metadata, {}};
  std::uint64_t end = 0;
  for (const TensorSpec& tensor : tensors) {
    const std::uint64_t begin = end;
    end += static_cast<std::uint64_t>(bytes_of(tensor));
    header.tensors.push_back({tensor, begin, end});
  }
  const std::string text = format_safetensors_header(path.string(), header);
  const std::uint64_t length = text.size();
  write(&length, sizeof length);
  write(text.data(), text.size());
}

void SafetensorsWriter::write(const void* data, std::size_t bytes) {
  file_.write(data, bytes);
  sum_.add(data, bytes);
}

std::string SafetensorsWriter::commit() {
  file_.commit();
  return sum_.finish();
}

std::string write_safetensors(const fs::path& path, std::span<const TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata) {
  const std::vector<const TensorToWrite*> order = in_file_order(path.string(), tensors);
  std::vector<TensorSpec> specs;
  for (const TensorToWrite* tensor : order) specs.push_back(tensor->spec);
  SafetensorsWriter file(path, specs, metadata);
  for (const TensorToWrite* tensor : order) {
    file.write(tensor->data, static_cast<std::size_t>(bytes_of(tensor->spec)));
  }
  return file.commit();
}

}  // namespace ringlet::train
