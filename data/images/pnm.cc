#include "data/images/pnm.h"

#include <cctype>

namespace ringlet::data {

namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr int kMaximum = 255;
constexpr int kLargestMaximum = 65535;

void pass_blanks(Bytes file, std::size_t& at) {
  bool comment = false;
  for (; at < file.size(); ++at) {
    if (file[at] == '#') comment = true;
    if (file[at] == '\n' || file[at] == '\r') comment = false;
    if (!comment && std::isspace(file[at]) == 0) return;
  }
}

/// The decimal number at `at`; 0 where there is none or it is beyond 2^30.
std::int64_t number_at(Bytes file, std::size_t& at) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  pass_blanks(file, at);
  std::int64_t value = 0;
  for (; at < file.size() && std::isdigit(file[at]) != 0; ++at) {
    value = value * 10 + (file[at] - '0');
    if (value > kMost) return 0;
  }
  return value;
}

std::size_t samples_of(const PnmHeader& header) {
  return static_cast<std::size_t>(header.width) * static_cast<std::size_t>(header.height) *
         static_cast<std::size_t>(header.channels);
}

std::size_t bytes_of_sample(const PnmHeader& header) { return header.maximum > kMaximum ? 2 : 1; }

}  // namespace

PnmHeader pnm_header(Bytes file) {
  PnmHeader header;
  header.channels = file[1] == '6' ? 3 : 1;
  header.begin = 2;
  header.width = number_at(file, header.begin);
  header.height = number_at(file, header.begin);
  const std::int64_t maximum = number_at(file, header.begin);
  if (header.width < 1 || header.height < 1 || maximum < 1 || maximum > kLargestMaximum) {
    header.failure = "its header has no width, height and maximum";
  }
  header.maximum = static_cast<int>(maximum);
  ++header.begin;
  return header;
}

const char* pnm_defect(const PnmHeader& header, std::uint64_t file_bytes) {
  if (header.failure != nullptr) return header.failure;
  const bool whole = header.begin <= file_bytes &&
                     (file_bytes - header.begin) / bytes_of_sample(header) >= samples_of(header);
  return whole ? nullptr : "bytes are missing at its end";
}

const char* pnm_decode(Bytes file, const PnmHeader& header, Image& image) {
  if (const char* defect = pnm_defect(header, file.size())) return defect;
  const std::size_t samples = samples_of(header), bytes = bytes_of_sample(header);
  const Bytes raw = file.subspan(header.begin);
  image.pixels.resize(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    const int sample = bytes == 1 ? raw[i] : raw[2 * i] << 8 | raw[2 * i + 1];
    if (sample > header.maximum) return "a pixel is above the header's maximum";
    image.pixels[i] =
        static_cast<std::uint8_t>((sample * kMaximum + header.maximum / 2) / header.maximum);
  }
  return nullptr;
}

}  // namespace ringlet::data
