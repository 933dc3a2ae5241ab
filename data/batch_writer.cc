#include "data/batch_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/data_error.h"

namespace ringlet::data {
namespace {

constexpr std::int64_t kLanes = BatchWriter::kBlock;
/// The samples of a shuffled batch lie all over the memory. Sixteen images at once keep the memory
/// busy; when they are taken one by one, each is prefetched this many images early.
constexpr std::int64_t kAhead = 4;

void prefetch(const std::uint8_t* image, std::int64_t bytes) {
  constexpr std::int64_t kCacheLine = 64;
  for (std::int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(image + i);
}

void normalise(const std::uint8_t* image, std::int64_t pixels, PixelScale scale, float* out) {
  for (std::int64_t i = 0; i < pixels; ++i) out[i] = scale(image[i]);
}

/// Sixteen bytes in one register, in the compilers' portable notation for vectors.
using ByteVector = std::uint8_t __attribute__((vector_size(16)));
using LaneRows = std::array<const std::uint8_t*, kLanes>;

ByteVector zip_low(ByteVector a, ByteVector b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
ByteVector zip_high(ByteVector a, ByteVector b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

/// Sixteen rows of sixteen bytes, transposed: zipping rows i and i + 8 is one of four equal steps
/// (each rotates the eight bits of the byte's address by one).
void transpose(std::array<ByteVector, kLanes>& tile) {
  std::array<ByteVector, kLanes> zipped{};
  for (int step = 0; step < 4; ++step) {
    for (std::size_t i = 0; i < 8; ++i) {
      zipped[2 * i] = zip_low(tile[i], tile[i + 8]);
      zipped[2 * i + 1] = zip_high(tile[i], tile[i + 8]);
    }
    tile = zipped;
  }
}

/// out[pixel][lane] = scale(rows[lane][pixel]), for `pixels` pixels.
void interleave(const LaneRows& rows, std::int64_t pixels, PixelScale scale, float* out) {
  std::int64_t pixel = 0;
  for (; pixel + kLanes <= pixels; pixel += kLanes) {
    std::array<ByteVector, kLanes> tile{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      std::memcpy(&tile[lane], rows[lane] + pixel, sizeof(ByteVector));
    }
    transpose(tile);
    for (std::size_t i = 0; i < kLanes; ++i, out += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        out[lane] = scale(tile[i][lane]);
      }
    }
  }
  for (; pixel < pixels; ++pixel, out += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      out[lane] = scale(rows[lane][pixel]);
    }
  }
}

void clear_lanes(std::int64_t first, std::int64_t pixels, float* out) {
  for (; pixels > 0; --pixels, out += kLanes) std::fill(out + first, out + kLanes, 0.0F);
}

}  // namespace

BatchWriter::BatchWriter(const Dataset& dataset, const Sampler& sampler,
                         const LoaderOptions& options)
    : dataset_(dataset),
      images_(options.augment.kind == Augment::none ? dataset.images()
                                                    : std::span<const std::uint8_t>{}),
      sampler_(sampler),
      augmentation_(options.augment),
      on_read_(options.on_read),
      layout_(options.layout),
      max_batch_(options.max_batch),
      scales_(pixel_scales(options.mean, options.deviation)) {
  if (images_.empty()) read_.resize(static_cast<std::size_t>(kLanes * dataset.pixels()));
}

std::int64_t BatchWriter::image_floats(std::int64_t samples) const {
  const std::int64_t stored =
      layout_ != BatchLayout::lanes16 ? samples : (samples + kLanes - 1) / kLanes * kLanes;
  return stored * dataset_.pixels();
}

void BatchWriter::write(const BatchRequest& request, Batch& batch) {
  begin(request, batch);
  if (layout_ != BatchLayout::lanes16) {
    write_one_by_one(request, batch);
  } else {
    write_lanes(request, batch);
  }
}

void BatchWriter::begin(const BatchRequest& request, Batch& batch) const {
  check(request);
  batch.n = request.size();
  batch.request = request;
}

std::int64_t BatchWriter::target(Batch& batch, std::int64_t row) const {
  const BatchRequest& request = batch.request;
  const std::int64_t index = sampler_.index(request.epoch, request.begin + row);
  if (!dataset_.targets().empty()) {
    batch.targets[row] = dataset_.targets()[static_cast<std::size_t>(index)];
  }
  for (std::size_t i = 0; i < dataset_.fields().size(); ++i) {
    const Field& field = dataset_.fields()[i];
    std::copy_n(field.values.begin() + index * field.numbers(), field.numbers(),
                batch.fields[i] + row * field.numbers());
  }
  return index;
}

void BatchWriter::read(Batch& batch, std::int64_t row, std::span<std::uint8_t> sample) const {
  const std::int64_t index = target(batch, row), epoch = batch.request.epoch;
  on_read_();
  if (augmentation_.kind == Augment::none) {
    dataset_.read(index, sample);
  } else {
    dataset_.read_varied(index, variation_of(augmentation_, epoch, index), sample);
  }
  on_read_();
}

void BatchWriter::lay_out(const std::uint8_t* samples, std::int64_t row, std::int64_t count,
                          Batch& batch) const {
  const std::int64_t pixels = dataset_.pixels();
  float* out = batch.images + row * pixels;
  if (layout_ != BatchLayout::lanes16) {
    for (std::int64_t i = 0; i < count; ++i) lay_out_image(samples + i * pixels, out + i * pixels);
    return;
  }
  Rows rows;
  rows.fill(samples);  // something readable
  for (std::int64_t i = 0; i < count; ++i) rows[static_cast<std::size_t>(i)] = samples + i * pixels;
  lay_out_lanes(rows, count, out);
}

void BatchWriter::check(const BatchRequest& request) const {
  const bool inside = request.epoch >= 0 && request.begin >= 0 && request.begin <= request.end &&
                      request.end <= dataset_.size();
  if (inside && request.size() <= max_batch_) return;
  throw DataError(dataset_.name() + ": a batch of positions " + std::to_string(request.begin) +
                  " to " + std::to_string(request.end) + " of epoch " +
                  std::to_string(request.epoch) + " was asked for, but there are " +
                  std::to_string(dataset_.size()) + " samples and the largest batch is " +
                  std::to_string(max_batch_));
}

const std::uint8_t* BatchWriter::gather(const BatchRequest& request, std::int64_t position,
                                        Batch& batch) {
  const std::int64_t row = position - request.begin, pixels = dataset_.pixels();
  if (!images_.empty()) return images_.data() + target(batch, row) * pixels;
  const auto bytes = static_cast<std::size_t>(pixels);
  const auto sample = std::span(read_).subspan(static_cast<std::size_t>(row % kLanes) * bytes);
  read(batch, row, sample.first(bytes));
  return sample.data();
}

void BatchWriter::lay_out_image(const std::uint8_t* image, float* out) const {
  if (layout_ == BatchLayout::nhwc && dataset_.channels() > 1) return lay_out_nhwc(image, out);
  const std::int64_t run = dataset_.pixels() / std::ssize(scales_);
  for (const PixelScale& scale : scales_) {
    normalise(image, run, scale, out);
    image += run, out += run;
  }
}

void BatchWriter::lay_out_nhwc(const std::uint8_t* image, float* out) const {
  const std::int64_t channels = dataset_.channels(), pixels = dataset_.pixels() / channels;
  for (std::int64_t c = 0; c < channels; ++c, image += pixels) {
    const PixelScale& scale = scales_[scales_.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    for (std::int64_t p = 0; p < pixels; ++p) out[p * channels + c] = scale(image[p]);
  }
}

void BatchWriter::lay_out_lanes(Rows rows, std::int64_t filled, float* out) const {
  const std::int64_t pixels = dataset_.pixels(), run = pixels / std::ssize(scales_);
  float* const begin = out;
  for (const PixelScale& scale : scales_) {
    interleave(rows, run, scale, out);
    for (const std::uint8_t*& row : rows) row += run;
    out += kLanes * run;
  }
  if (filled < kLanes) clear_lanes(filled, pixels, begin);
}

void BatchWriter::write_one_by_one(const BatchRequest& request, Batch& batch) {
  const std::int64_t pixels = dataset_.pixels();
  float* out = batch.images;
  for (std::int64_t position = request.begin; position < request.end; ++position, out += pixels) {
    if (position + kAhead < request.end && !images_.empty()) {
      prefetch(images_.data() + sampler_.index(request.epoch, position + kAhead) * pixels, pixels);
    }
    lay_out_image(gather(request, position, batch), out);
  }
}

void BatchWriter::write_lanes(const BatchRequest& request, Batch& batch) {
  float* out = batch.images;
  for (std::int64_t block = request.begin; block < request.end; block += kLanes) {
    const std::int64_t filled = std::min(kLanes, request.end - block);
    Rows rows;
    for (std::int64_t lane = 0; lane < filled; ++lane) {
      rows[static_cast<std::size_t>(lane)] = gather(request, block + lane, batch);
    }
    std::fill(rows.begin() + filled, rows.end(), rows[0]);  // something readable
    lay_out_lanes(rows, filled, out);
    out += kLanes * dataset_.pixels();
  }
}

}  // namespace ringlet::data
