#include "app/report/pair_distances.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "app/report/test_results.h"
#include "base/files/file_error.h"
#include "base/files/input_file.h"
#include "base/one_line.h"
#include "data/pair_images.h"
#include "train/files/model_info.h"
#include "train/telemetry/verification_files.h"

namespace ringlet::app::report {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kHead = "set,pair,same,distance";
constexpr std::uintmax_t kMostTable = std::uintmax_t{1} << 28;  // bytes: millions of pairs

/// The number that all of `text` says.
template <class T>
bool read_number(std::string_view text, T& number) {
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stopped == text.data() + text.size();
}

/// What stands behind the last comma of `line`, which is taken off.
std::string_view cut_field(std::string_view& line) {
  const auto comma = line.rfind(',');
  if (comma == std::string_view::npos) return {};
  const std::string_view field = line.substr(comma + 1);
  line = line.substr(0, comma);
  return field;
}

/// A set's name without the quotes that a comma in it asks for. Older tables have none.
std::string name_in(std::string_view field) {
  const bool is_quoted = field.size() >= 2 && field.front() == '"' && field.back() == '"';
  if (!is_quoted) return std::string(field);
  std::string name;
  for (std::size_t i = 1; i + 1 < field.size(); ++i) {
    name += field[i];
    if (field[i] == '"' && field[i + 1] == '"' && i + 2 < field.size()) ++i;
  }
  return name;
}

/// False for a line that is no pair's, or not the next one's.
bool add_line(std::string_view line, std::vector<PairDistances>& sets) {
  constexpr double kMost = 4.001;  // of unit vectors: 4
  double distance = 0;
  int same = 0;
  std::int64_t pair = 0;
  const bool reads = read_number(cut_field(line), distance) && read_number(cut_field(line), same) &&
                     read_number(cut_field(line), pair);
  if (!reads || !(distance >= 0 && distance <= kMost) || (same != 0 && same != 1)) return false;
  const std::string name = name_in(line);
  if (sets.empty() || sets.back().name != name) sets.push_back({name, {}, {}});
  PairDistances& set = sets.back();
  if (pair != std::ssize(set.distances)) return false;
  set.distances.push_back(distance);
  set.same.push_back(same == 1);
  return true;
}

/// Where run.json says that the set's pairs lay.
fs::path file_of_set(const RunFolder& run, const std::string& set, std::string& hash) {
  for (const RunFacts::Set& one : run.facts.value_or(RunFacts()).verification_sets()) {
    if (on_one_line(one.name) != set) continue;
    hash = one.hash;
    return one.file;
  }
  throw FileError("run.json does not say where the pairs of " + set + " lay");
}

}  // namespace

std::vector<PairDistances> parse_distances(std::string_view text, const std::string& source) {
  std::vector<PairDistances> sets;
  std::int64_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (number == 1 ? line == kHead : add_line(line, sets)) continue;
    throw FileError(fmt::format("{}: line {} is not of a table of distances", source, number));
  }
  return sets;
}

std::vector<PairDistances> distances_of(const RunFolder& run) {
  const fs::path file = run.path / train::kDistancesFile;
  std::error_code error;
  if (fs::status(file, error).type() == fs::file_type::not_found) return {};
  return parse_distances(read_text(file, kMostTable), file.string());
}

double best_threshold(const PairDistances& set) {
  constexpr int kSteps = 400;
  constexpr double kStep = 0.01;
  std::int64_t most = -1;
  double best = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double threshold = i * kStep;
    std::int64_t right = 0;
    for (std::size_t k = 0; k < set.distances.size(); ++k) {
      right += (set.distances[k] < threshold) == set.same[k] ? 1 : 0;
    }
    if (right <= most) continue;
    most = right;
    best = threshold;
  }
  return best;
}

std::vector<WrongPair> worst_of(const PairDistances& set, double threshold, std::size_t keep) {
  std::vector<WrongPair> wrong;
  for (std::size_t i = 0; i < set.distances.size(); ++i) {
    const double distance = set.distances[i];
    if ((distance < threshold) == set.same[i]) continue;
    wrong.push_back(
        {static_cast<std::int64_t>(i), set.same[i], distance, std::abs(distance - threshold)});
  }
  std::ranges::stable_sort(wrong, std::greater(), &WrongPair::by);
  wrong.resize(std::min(keep, wrong.size()));
  return wrong;
}

std::vector<Html> pictures_of(const RunFolder& run, const std::string& set,
                              const std::vector<WrongPair>& pairs) {
  std::string hash;
  const fs::path file = file_of_set(run, set, hash);
  const auto model = run.weights ? train::read_model_info(*run.weights) : std::nullopt;
  if (!model) throw FileError("no weights say how large a picture the model sees");
  const auto opened = data::open_pairs(file);
  std::vector<std::int64_t> chosen;
  for (const WrongPair& wrong : pairs) chosen.push_back(wrong.pair);
  const bool has_all =
      std::ranges::all_of(chosen, [&](std::int64_t pair) { return pair < opened->size(); });
  if (!has_all || fmt::format("{:016x}", opened->hash()) != hash) {
    throw FileError(file.string() + " has other pairs than the run was measured on");
  }
  if (chosen.empty()) return {};
  const data::PairImages images(opened, chosen,
                                {model->channels, model->height, model->width, model->exif, false});
  std::vector<Html> pictures;
  for (std::int64_t i = 0; i < images.size(); ++i) pictures.push_back(image_uri(images, i));
  return pictures;
}

}  // namespace ringlet::app::report
