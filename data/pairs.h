// Pairs of pictures, each with whether both are of the same identity: what verification is measured
// on. Pictures 2k and 2k + 1 are pair k. From
//
//   text        a line for each pair, PATH TAB PATH TAB 0|1; 1: the same
//   pairs.txt   LFW's: a first line of FOLDS TAB N or N alone, then 2 FOLDS N lines: NAME i j, the
//               same, and NAME i OTHER j. Each picture is NAME/NAME_%04d.jpg
//   .bin        a pickle (data/pickled_pairs.h)
//
// Paths begin where the text lies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringlet::data {

/// A line of the text.
struct NamedPair {
  std::string first, second;
  bool same = false;

  bool operator==(const NamedPair&) const = default;
};

/// Reads both forms of text. `name` is for messages. Throws DataError: a line of another form, none
/// at all, more or fewer than LFW's first line says.
std::vector<NamedPair> read_pairs(std::istream& lines, const std::string& name);

/// The text for them.
std::string pairs_text(std::span<const NamedPair> pairs);

class Pairs {
 public:
  virtual ~Pairs() = default;
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;

  const std::string& file() const { return file_; }
  std::string name() const;  ///< "lfw" of data/lfw.bin
  std::int64_t size() const { return static_cast<std::int64_t>(same_.size()); }
  const std::vector<bool>& same() const { return same_; }

  /// The bytes of picture 0 to 2 size() - 1 as its file has them, in `kept` or elsewhere: good
  /// until `kept` changes. Any number of threads. Throws DataError where they cannot be read.
  virtual std::span<const std::uint8_t> picture(std::int64_t index,
                                                std::vector<std::uint8_t>& kept) const = 0;
  /// What a message calls it: its path, or "lfw.bin: picture 7".
  virtual std::string picture_name(std::int64_t index) const = 0;
  /// 64 bits over pictures and answers: equal on ranks that see the same.
  virtual std::uint64_t hash() const = 0;

 protected:
  Pairs(std::string file, std::vector<bool> same)
      : file_(std::move(file)), same_(std::move(same)) {}

 private:
  std::string file_;
  std::vector<bool> same_;
};

/// Opens a file of pairs: a pickle where its name ends in .bin or its content says so, else text.
/// Throws DataError, also for a picture that is not there.
std::shared_ptr<const Pairs> open_pairs(const std::filesystem::path& file);

}  // namespace ringlet::data
