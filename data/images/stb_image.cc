#include <climits>
#include <cstdlib>
#include <cstring>

#include "data/images/stb.h"

namespace {

// The most bytes of one allocation. stb inflates a PNG as far as memory goes, whatever its header
// says.
thread_local std::size_t largest_allocation = 0;
// Where it is taken from; null: from the system.
thread_local ringlet::data::DecodeMemory* decode_memory = nullptr;
// Whether the system had none.
thread_local bool had_no_memory = false;

/// Notes where there is none.
void* noted(void* memory) {
  had_no_memory |= memory == nullptr;
  return memory;
}

void* allocate(std::size_t bytes) {
  if (bytes > largest_allocation) return nullptr;
  void* memory = decode_memory == nullptr ? nullptr : decode_memory->take(bytes);
  return memory == nullptr ? noted(std::malloc(bytes)) : memory;
}

bool is_of_decode_memory(const void* memory) {
  return decode_memory != nullptr && decode_memory->owns(memory);
}

void release(void* memory) {
  if (!is_of_decode_memory(memory)) std::free(memory);
}

void* reallocate(void* memory, std::size_t old_bytes, std::size_t bytes) {
  if (bytes > largest_allocation) return nullptr;
  if (!is_of_decode_memory(memory)) return noted(std::realloc(memory, bytes));
  void* moved = allocate(bytes);
  if (moved != nullptr) std::memcpy(moved, memory, old_bytes < bytes ? old_bytes : bytes);
  return moved;
}

}  // namespace

#define STBI_MALLOC allocate
#define STBI_REALLOC_SIZED reallocate
#define STBI_FREE release
#define STBI_NO_STDIO
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION

// Makes a row of a JPEG's colours twice as wide (4:2:2). stb's own takes the last sample but one
// for nearer to the wrong neighbour. The macro has a new name for stb's where it is defined; where
// its address is taken, no bracket follows, and ours below is meant.
// NOLINTBEGIN(bugprone-reserved-identifier): stb's name
static unsigned char* stbi__resample_row_h_2(unsigned char* out, unsigned char* near,
                                             unsigned char* far, int samples, int times);
#define stbi__resample_row_h_2(...) resample_row_h_2_of_stb(__VA_ARGS__)
#include <stb_image.h>
#undef stbi__resample_row_h_2
// NOLINTEND(bugprone-reserved-identifier)

static stbi_uc* stbi__resample_row_h_2(stbi_uc* out, stbi_uc* near, stbi_uc* far, int samples,
                                       int times) {
  stbi_uc* const row = resample_row_h_2_of_stb(out, near, far, samples, times);
  if (samples > 1) {
    const int sum = 3 * near[samples - 1] + near[samples - 2];
    row[2 * samples - 2] = static_cast<stbi_uc>((sum + 2) / 4);
  }
  return row;
}

namespace ringlet::data {

const char* const kNoMemory = "no memory is left";

namespace {

constexpr std::size_t kForHeader = std::size_t{1} << 20;

const char* reason() {
  if (had_no_memory) return kNoMemory;
  const char* text = stbi_failure_reason();
  return text == nullptr ? "no reason given" : text;
}

/// Why there is no header. stb looks for one of each format, and from 2.28 on tells why it is none
/// of the last one. Its decoder tells of the file's own.
const char* reason_of_header(std::span<const std::uint8_t> file) {
  const char* const last = reason();
  if (had_no_memory) return last;
  int width = 0, height = 0, channels = 0;
  stbi_uc* const decoded = stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width,
                                                 &height, &channels, 0);
  if (decoded == nullptr) return reason();
  stbi_image_free(decoded);
  return last;
}

}  // namespace

StbHeader stb_header(std::span<const std::uint8_t> file) {
  largest_allocation = kForHeader;
  had_no_memory = false;
  StbHeader header;
  const int good = stbi_info_from_memory(file.data(), static_cast<int>(file.size()), &header.width,
                                         &header.height, &header.channels);
  if (good == 0) header.failure = reason_of_header(file);
  // A BMP's height is below 0 where its first row is the uppermost.
  if (header.height != INT_MIN) header.height = std::abs(header.height);
  return header;
}

void DecodeMemory::begin() {
  constexpr std::size_t kMost = std::size_t{64} << 20;
  if (missing_ > 0 && size_ < kMost) {
    const std::size_t wanted = used_ + missing_ + missing_ / 4;
    size_ = wanted < kMost ? wanted : kMost;
    bytes_.reset();
    bytes_.reset(new std::uint8_t[size_]);
  }
  used_ = missing_ = 0;
}

void* DecodeMemory::take(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded > size_ - used_) {
    missing_ += rounded;
    return nullptr;
  }
  used_ += rounded;
  return bytes_.get() + (used_ - rounded);
}

bool DecodeMemory::owns(const void* memory) const {
  const auto* byte = static_cast<const std::uint8_t*>(memory);
  return byte >= bytes_.get() && byte < bytes_.get() + size_;
}

StbPixels::~StbPixels() {
  if (is_own_) std::free(pixels_);
}

namespace {

/// stb_decode_rgbx(). `channels`: of the file; a PNG with a colour that is transparent has one more
/// than its header says.
const char* decode_rgbx(std::span<const std::uint8_t> file, const StbHeader& header,
                        std::size_t largest, DecodeMemory* memory, StbPixels& pixels,
                        int& channels) {
  constexpr int kFour = 4;
  largest_allocation = largest;
  had_no_memory = false;
  decode_memory = memory;
  int width = 0, height = 0;
  stbi_uc* decoded = stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width,
                                           &height, &channels, kFour);
  pixels = StbPixels(decoded, !is_of_decode_memory(decoded));
  decode_memory = nullptr;
  if (pixels.get() == nullptr) return reason();
  const bool as_announced = width == header.width && height == header.height;
  return as_announced ? nullptr : "its size is not what its header says";
}

}  // namespace

const char* stb_decode_rgbx(std::span<const std::uint8_t> file, const StbHeader& header,
                            std::size_t largest, DecodeMemory* memory, StbPixels& pixels) {
  int channels = 0;
  return decode_rgbx(file, header, largest, memory, pixels, channels);
}

const char* stb_decode(std::span<const std::uint8_t> file, std::size_t largest, Image& image) {
  StbPixels rgba;
  const StbHeader header{image.width, image.height, image.channels, nullptr};
  const char* failure = decode_rgbx(file, header, largest, nullptr, rgba, image.channels);
  if (failure != nullptr) return failure;
  // stb makes RGBA of grey by repeating it.
  const std::size_t channels = static_cast<std::size_t>(image.channels);
  const std::size_t count =
      static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  image.pixels.resize(count * channels);
  const std::uint8_t* from = rgba.get();
  std::uint8_t* to = image.pixels.data();
  for (std::size_t i = 0; i < count; ++i, from += 4) {
    for (std::size_t c = 0; c + 1 < channels; ++c) *to++ = from[c];
    *to++ = channels % 2 == 0 ? from[3] : from[channels - 1];
  }
  return nullptr;
}

}  // namespace ringlet::data
