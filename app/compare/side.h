// One side of a comparison: what a file of measurements or a run's folder says, in rows that have
// their like on the other side.
//
//   ringlet bench all-reduce --json   a row a strategy and size: the median time of a call
//   ringlet bench train --json        samples a second, and the time of each part of a step
//   the same of several --replicas    these rows for each number of them
//   a run's folder                    seconds an epoch, and samples a second
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "app/compare/ratio.h"
#include "app/report/curve.h"

namespace ringlet::app::compare {

enum class Kind : std::uint8_t { all_reduce, training, scaling, run };

/// "measurements of 'ringlet bench all-reduce'"
const char* name_of(Kind kind);

struct Row {
  std::string group{};     ///< "2 ranks as threads over local, f32 sum in place"; may be empty
  std::string name{};      ///< "ring", "forward (ms)"
  std::int64_t bytes = 0;  ///< on each rank; 0: it has no size
  bool is_rate = false;    ///< a second, not a time
  Figure figure{};
  std::string why_not{};  ///< it decides nothing, because of this; empty: it counts
  std::string of{};       ///< "of 2 replicas", where the name alone does not say; may be empty
  bool wrong = false;     ///< its results are, which is a why_not as well
};

/// What a side was measured on, with or by: sides of which one says something else are unlike.
struct Trait {
  const char* of;        ///< "machines"
  std::string said;      ///< "on AMD EPYC, 2 cores, avx2"; empty: nothing
  bool of_both = false;  ///< sides of which one says nothing are not unlike in this
};

/// Shown, and not judged: one run says nothing of the next.
struct Shown {
  std::string name;  ///< "last test accuracy"
  std::string text;  ///< "91.30 %"
};

/// Numbers by rounds or epochs, for the page.
struct Line {
  const char* id;
  const char* title;
  const char* over;  ///< what x counts: "epoch"
  bool percent = false;
  report::Curve curve{};
};

struct Side {
  std::string file;  ///< as it was named
  Kind kind = Kind::all_reduce;
  std::vector<Trait> traits{};  ///< the same ones, in the same order, for all of a kind
  std::vector<Row> rows{};      ///< at least one; no two of one group, name and size
  std::vector<Shown> shown{};
  std::vector<Line> lines{};
};

/// Reads a file or a folder; which kind it is shows in it. Of several rows of the same group, name
/// and size the quickest is taken, of those that count if any does. Throws FileError in one line
/// that names the file, and the row and field that are wrong.
Side read_side(const std::filesystem::path& path);

/// By kind; read_side() calls these.
Side all_reduce_side(const std::filesystem::path& file);
Side training_side(const std::filesystem::path& file);
Side run_side(const std::filesystem::path& folder);

/// "on AMD EPYC, 2 cores, avx2"; leaves out what is not known.
std::string machine_words(const std::string& processor, const std::string& cores,
                          const std::string& instruction_set, const std::string& gpus);
/// "by a build of 2d58b2e5, GNU 12.2.0, Release", likewise.
std::string build_words(const std::string& commit, const std::string& compiler,
                        const std::string& type);
/// Both of the JSON of a file of measurements, from its "machine" and "build"; each may be missing.
std::string machine_words(const nlohmann::json& machine);
std::string build_words(const nlohmann::json& document);

/// "on cores of their own", or "on cores that were shared" (base/core_pace.h): there short calls
/// and steps take up to twice as long. Nothing where it was so for a part of the time, or `shared`,
/// a share, is below 0. Unlike where both sides say something.
Trait use_of_cores(double shared);

/// The text or number of that name in a few words; empty where there is none.
std::string word_in(const nlohmann::json& object, const char* name);

}  // namespace ringlet::app::compare
