#include "data/images/webp.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/shared_library.h"
#include "data/images/stb.h"

namespace ringlet::data {

namespace {

using Bytes = std::span<const std::uint8_t>;

/// What is called of libwebp, as <webp/decode.h> declares it.
struct Webp {
  SharedLibrary library{"libwebp.so.7", "install libwebp7"};
  using GetInfo = int(const std::uint8_t* data, std::size_t bytes, int* width, int* height);
  using DecodeInto = std::uint8_t*(const std::uint8_t* data, std::size_t bytes, std::uint8_t* out,
                                   std::size_t out_bytes, int row_bytes);
  GetInfo* info = library.function<GetInfo>("WebPGetInfo");
  DecodeInto* rgb = library.function<DecodeInto>("WebPDecodeRGBInto");
  DecodeInto* rgba = library.function<DecodeInto>("WebPDecodeRGBAInto");
  // The same in steps, which tells why it fails. `order`: 0 RGB, 1 RGBA.
  using Begin = void*(int order, std::uint8_t* out, std::size_t out_bytes, int row_bytes);
  using Update = int(void* decoder, const std::uint8_t* data, std::size_t bytes);
  using End = void(void* decoder);
  Begin* begin = library.function<Begin>("WebPINewRGB");
  Update* update = library.function<Update>("WebPIUpdate");
  End* end = library.function<End>("WebPIDelete");
};

/// Null where it is not there.
const Webp* webp() {
  static const std::unique_ptr<const Webp> opened = []() -> std::unique_ptr<const Webp> {
    try {
      return std::make_unique<const Webp>();
    } catch (const DeviceError&) {
      return nullptr;
    }
  }();
  return opened.get();
}

constexpr std::size_t kFirstChunk = 12, kContent = 20;

bool first_chunk_is(Bytes file, const char* name) {
  return file.size() > kContent && std::memcmp(file.data() + kFirstChunk, name, 4) == 0;
}

bool has_alpha(Bytes file) {
  constexpr std::size_t kLosslessFlags = kContent + 4;
  constexpr std::uint8_t kAlpha = 0x10;
  if (first_chunk_is(file, "VP8X")) return (file[kContent] & kAlpha) != 0;
  return first_chunk_is(file, "VP8L") && file.size() > kLosslessFlags &&
         (file[kLosslessFlags] & kAlpha) != 0;
}

/// Whether what failed does so for want of memory.
bool lacks_memory(Bytes file, int channels, std::span<std::uint8_t> pixels, int row_bytes) {
  constexpr int kOutOfMemory = 1;
  const auto end = [](void* decoder) { webp()->end(decoder); };
  const std::unique_ptr<void, decltype(end)> decoder(
      webp()->begin(channels == 3 ? 0 : 1, pixels.data(), pixels.size(), row_bytes), end);
  return !decoder || webp()->update(decoder.get(), file.data(), file.size()) == kOutOfMemory;
}

}  // namespace

bool reads_webp() { return webp() != nullptr; }

bool is_animated_webp(Bytes file) {
  constexpr std::uint8_t kAnimation = 0x02;
  return first_chunk_is(file, "VP8X") && (file[kContent] & kAnimation) != 0;
}

const char* webp_defect(Bytes file) {
  constexpr std::size_t kBefore = 8;  // what the length does not count
  if (file.size() < kFirstChunk) return "bytes are missing at its end";
  std::uint64_t bytes = 0;
  for (std::size_t i = kBefore; i-- > 4;) bytes = bytes << 8 | file[i];
  return bytes + kBefore <= file.size() ? nullptr : "bytes are missing at its end";
}

WebpHeader webp_header(Bytes file) {
  WebpHeader header{.channels = has_alpha(file) ? 4 : 3};
  if (webp()->info(file.data(), file.size(), &header.width, &header.height) == 0) {
    header.failure = "its header says no size";
  }
  return header;
}

const char* webp_decode(Bytes file, const WebpHeader& header, int channels,
                        std::span<std::uint8_t> pixels) {
  const auto decode = channels == 3 ? webp()->rgb : webp()->rgba;
  const int row_bytes = header.width * channels;
  const std::uint8_t* done =
      decode(file.data(), file.size(), pixels.data(), pixels.size(), row_bytes);
  if (done != nullptr) return nullptr;
  return lacks_memory(file, channels, pixels, row_bytes) ? kNoMemory
                                                         : "its pixels cannot be decoded";
}

}  // namespace ringlet::data
