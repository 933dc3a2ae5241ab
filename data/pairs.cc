#include "data/pairs.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "base/data_error.h"
#include "base/hash.h"
#include "base/one_line.h"
#include "base/pickle_machine.h"
#include "data/fingerprint.h"
#include "data/images/image.h"
#include "data/pickled_pairs.h"
#include "data/stored_file.h"

namespace ringlet::data {

namespace {

namespace fs = std::filesystem;

/// The words of a line: between tabs, or of LFW's pairs between any blanks.
std::vector<std::string> words_of(const std::string& line, const char* between) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find_first_of(between, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::optional<int> count_in(const std::string& word) {
  constexpr int kMost = 9999999;
  int value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = read.ec == std::errc() && read.ptr == word.data() + word.size();
  return whole && value > 0 && value <= kMost ? std::optional(value) : std::nullopt;
}

/// How many pairs LFW's first line tells of; nothing where it is none.
std::optional<std::int64_t> told_by(const std::string& line) {
  const std::vector<std::string> words = words_of(line, " \t");
  if (words.size() > 2) return {};
  std::int64_t pairs = 2;
  for (const std::string& word : words) {
    const std::optional<int> count = count_in(word);
    if (!count) return {};
    pairs *= *count;
  }
  return pairs;
}

std::string path_of(const std::string& name, int number) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "_%04d.jpg", number);
  return name + "/" + name + digits;
}

std::optional<NamedPair> pair_of_lfw(const std::string& line) {
  const std::vector<std::string> words = words_of(line, " \t");
  constexpr std::size_t kSame = 3, kOthers = 4;
  if (words.size() != kSame && words.size() != kOthers) return {};
  const bool same = words.size() == kSame;
  const std::optional<int> first = count_in(words[1]), second = count_in(words.back());
  if (!first || !second || words[0].empty() || words[2].empty()) return {};
  return NamedPair{path_of(words[0], *first), path_of(same ? words[0] : words[2], *second), same};
}

std::optional<NamedPair> pair_of_paths(const std::string& line) {
  const std::vector<std::string> words = words_of(line, "\t");
  constexpr std::size_t kWords = 3;
  if (words.size() != kWords || words[0].empty() || words[1].empty()) return {};
  if (words[2] != "0" && words[2] != "1") return {};
  return NamedPair{words[0], words[1], words[2] == "1"};
}

class TextPairs final : public Pairs {
 public:
  TextPairs(const fs::path& file, const std::vector<NamedPair>& pairs)
      : Pairs(file.string(), answers_of(pairs)) {
    for (const NamedPair& pair : pairs) {
      for (const std::string& path : {pair.first, pair.second}) {
        paths_.push_back(file.parent_path() / path);
      }
    }
  }

  std::span<const std::uint8_t> picture(std::int64_t index,
                                        std::vector<std::uint8_t>& kept) const override {
    read_picture_file(path(index), {}, kept);
    return kept;
  }
  std::string picture_name(std::int64_t index) const override { return path(index).string(); }
  std::uint64_t hash() const override {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      hash = hash_bytes(&hash, sizeof hash, fingerprint_of(paths_[i]) ^ (same()[i / 2] ? 1 : 0));
    }
    return hash;
  }
  /// Throws for the first that is not there.
  void require_pictures() const {
    for (std::size_t i = 0; i < paths_.size(); ++i) {
      std::error_code error;
      if (fs::is_regular_file(paths_[i], error)) continue;
      throw DataError(file() + ": pair " + std::to_string(i / 2 + 1) + " names the picture " +
                      on_one_line(paths_[i].string()) +
                      ", which is not there; paths begin where the file of pairs lies");
    }
  }

 private:
  static std::vector<bool> answers_of(const std::vector<NamedPair>& pairs) {
    std::vector<bool> same;
    for (const NamedPair& pair : pairs) same.push_back(pair.same);
    return same;
  }
  const fs::path& path(std::int64_t index) const { return paths_[static_cast<std::size_t>(index)]; }

  std::vector<fs::path> paths_;
};

class BinPairs final : public Pairs {
 public:
  BinPairs(std::string file, std::vector<std::uint8_t> bytes, PickledPairs pickled)
      : Pairs(std::move(file), pickled.same),
        bytes_(std::move(bytes)),
        pickled_(std::move(pickled)) {}

  std::span<const std::uint8_t> picture(std::int64_t index,
                                        std::vector<std::uint8_t>& /*kept*/) const override {
    return pickled_.pictures[static_cast<std::size_t>(index)];
  }
  std::string picture_name(std::int64_t index) const override {
    return file() + ": picture " + std::to_string(index);
  }
  std::uint64_t hash() const override {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < pickled_.pictures.size(); ++i) {
      hash = hash_bytes(pickled_.pictures[i], hash ^ (same()[i / 2] ? 1 : 0));
    }
    return hash;
  }

 private:
  std::vector<std::uint8_t> bytes_;  // of the whole file, in which the pictures lie
  PickledPairs pickled_;
};

}  // namespace

std::vector<NamedPair> read_pairs(std::istream& lines, const std::string& name) {
  std::vector<NamedPair> pairs;
  std::optional<std::int64_t> told;
  std::string line;
  for (std::int64_t number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    if (number == 1 && (told = told_by(line))) continue;
    const std::optional<NamedPair> pair = told ? pair_of_lfw(line) : pair_of_paths(line);
    if (!pair) {
      throw DataError(name + ": line " + std::to_string(number) +
                      (told ? " is neither NAME i j nor NAME i OTHER j, as behind LFW's first line"
                            : " is no PATH TAB PATH TAB 0|1") +
                      "; correct it");
    }
    pairs.push_back(*pair);
  }
  if (pairs.empty()) throw DataError(name + ": there is no pair in it; name a file with pairs");
  // Of a fold there are as many same as different; a file without folds has N of each as well.
  if (told && *told != std::ssize(pairs)) {
    throw DataError(name + ": its first line tells of " + std::to_string(*told) +
                    " pairs, and there are " + std::to_string(pairs.size()) +
                    "; fetch the file again");
  }
  return pairs;
}

std::string pairs_text(std::span<const NamedPair> pairs) {
  std::string text;
  for (const NamedPair& pair : pairs) {
    text += pair.first + "\t" + pair.second + "\t" + (pair.same ? "1" : "0") + "\n";
  }
  return text;
}

std::string Pairs::name() const { return fs::path(file_).stem().string(); }

std::shared_ptr<const Pairs> open_pairs(const fs::path& path) {
  const StoredFile file(path);
  std::vector<std::uint8_t> first(std::min<std::uint64_t>(2, file.bytes()));
  file.read(0, first);
  if (path.extension() == ".bin" || begins_pickle(first)) {
    std::vector<std::uint8_t> bytes(file.bytes());
    file.read(0, bytes);
    PickledPairs pickled = read_pickled_pairs(bytes, file.name());
    return std::make_shared<const BinPairs>(file.name(), std::move(bytes), std::move(pickled));
  }
  std::ifstream lines(path);
  const auto pairs = std::make_shared<const TextPairs>(path, read_pairs(lines, file.name()));
  pairs->require_pictures();
  return pairs;
}

}  // namespace ringlet::data
