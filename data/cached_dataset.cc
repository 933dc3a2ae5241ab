#include "data/cached_dataset.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "data/byte_source.h"
#include "data/error.h"

namespace ringlet::data {

namespace {

DatasetInfo info_of(const Dataset& set) {
  return {.name = set.name(),
          .channels = set.channels(),
          .height = set.height(),
          .width = set.width(),
          .class_names = set.class_names(),
          .photographs = set.photographs()};
}

/// The error of the sample that comes first, whichever thread met it when.
struct FirstError {
  std::mutex mutex;
  std::int64_t index = -1;
  std::exception_ptr error;

  void note(std::int64_t at) {
    const std::lock_guard lock(mutex);
    if (index >= 0 && index < at) return;
    index = at;
    error = std::current_exception();
  }
};

}  // namespace

CachedDataset::CachedDataset(std::shared_ptr<const Dataset> source,
                             std::vector<std::uint8_t> images)
    : Dataset(info_of(*source), {source->labels().begin(), source->labels().end()}),
      source_(std::move(source)),
      images_(std::move(images)) {
  if (std::ssize(images_) == size() * pixels()) return;
  throw DataError(name() + ": there are " + std::to_string(images_.size()) +
                  " bytes of pixels for " + std::to_string(size()) + " images");
}

void CachedDataset::read(std::int64_t index, std::span<std::uint8_t> out) const {
  std::copy_n(images_.begin() + index * pixels(), out.size(), out.begin());
}

std::vector<std::uint8_t> read_all(const Dataset& set, int threads) {
  const auto pixels = static_cast<std::size_t>(set.pixels());
  const auto bytes = static_cast<std::size_t>(set.size()) * pixels;
  if (bytes > memory_bytes()) {
    throw DataError(set.name() + ": " + std::to_string(bytes >> 20) +
                    " MiB of pixels do not fit into the " + std::to_string(memory_bytes() >> 20) +
                    " MiB of memory; leave --cache out, or take a smaller --image-size");
  }
  std::vector<std::uint8_t> images(bytes);
  std::atomic<std::int64_t> next{0};
  FirstError first;
  const auto work = [&] {
    for (std::int64_t i = next++; i < set.size(); i = next++) {
      try {
        set.read(i, std::span(images).subspan(static_cast<std::size_t>(i) * pixels, pixels));
      } catch (...) {
        first.note(i);
        next = set.size();  // samples before it are under way already
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  if (first.error) std::rethrow_exception(first.error);
  return images;
}

}  // namespace ringlet::data
