#include "app/inspect/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/files/atomic_file.h"
#include "data/byte_source.h"
#include "data/folder_advice.h"
#include "train/files/foreign_format.h"

namespace ringlet::app::inspect {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kHeadBytes = 4096;

/// What Ringlet's commands write for other readers than `inspect`. `sign`: in the first bytes.
struct OwnFile {
  std::string_view sign;
  const char* is;
};
constexpr OwnFile kOwnFiles[] = {
    {"engine,ranks_as,", "it is what 'ringlet bench' writes by --csv"},
    {"\x93NUMPY", "it is NumPy's array, as 'ringlet predict' writes"},
    {"\"ranges\":", "it is what 'ringlet tune' keeps; 'ringlet simulate --from' reads it"},
    {"\"in_words\":", "it is what 'ringlet compare' writes by --json"},
    {"\"busiest_bytes\":", "it is what 'ringlet simulate' writes by --json"},
    {"\"counting_rows\":", "it is what 'ringlet bench' writes; 'ringlet compare' reads it"},
    {"\"median_us\":", "it is what 'ringlet bench' writes; 'ringlet compare' reads it"},
    {"\"samples_per_second\":",
     "it is what 'ringlet bench train' writes; 'ringlet compare' reads it"},
};

std::string first_bytes(const Subject& subject) {
  for (const OwnFile& own : kOwnFiles) {
    if (subject.head.find(own.sign) != subject.head.npos) return own.is;
  }
  if (const auto foreign = train::recognise_foreign(subject.head)) return "it is " + foreign->is;
  const std::string shown = train::first_bytes(subject.head);
  return shown.empty() ? "it is empty" : "it begins with " + shown;
}

[[noreturn]] void fail_unknown(const Subject& subject) {
  if (subject.is_folder) {
    const std::string advice = data::folder_advice(subject.path);
    if (!advice.empty()) throw FileError(advice);
    throw FileError(subject.path.string() +
                    " holds nothing of a run (state/, model.safetensors, metrics.jsonl); name the "
                    "--out of a run, a folder of pictures, or a file");
  }
  throw FileError(fmt::format(
      "{} is nothing that 'ringlet inspect' shows ({}{}); known are safetensors, PyTorch's .pth, "
      "IDX, state.json, Chrome traces and metrics in JSON lines",
      subject.path.string(), subject.gzipped ? "unpacked, " : "", first_bytes(subject)));
}

}  // namespace

Subject look_at(const fs::path& path) {
  std::error_code error;
  Subject subject{.path = path, .is_folder = fs::is_directory(path, error), .head = {}};
  if (subject.is_folder) return subject;
  const auto source = data::open_bytes(path);
  std::array<std::uint8_t, kHeadBytes> head{};
  const std::size_t got = source->read(head);
  subject.head.assign(head.begin(), head.begin() + static_cast<std::ptrdiff_t>(got));
  subject.stored = source->stored();
  subject.gzipped = source->gzipped();
  return subject;
}

Document inspect(const fs::path& path, const Wishes& wishes) {
  const Subject subject = look_at(path);
  for (const Format* format :
       {&kSafetensors, &kIdx, &kTrace, &kMetrics, &kState, &kRun, &kPictures}) {
    if (format->recognises(subject)) return format->describe(subject, wishes);
  }
  fail_unknown(subject);
}

}  // namespace ringlet::app::inspect
