// IDX: images or labels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "app/inspect/format.h"
#include "app/inspect/parts.h"
#include "data/idx.h"

namespace ringlet::app::inspect {
namespace {

/// How often each byte came: all that an IDX file's statistics need, exactly.
class Histogram {
 public:
  void add(std::span<const std::uint8_t> elements) {
    for (const std::uint8_t element : elements) ++counts_[element];
    total_ += static_cast<std::int64_t>(elements.size());
  }
  std::int64_t operator[](std::size_t value) const { return counts_[value]; }
  std::int64_t total() const { return total_; }
  int minimum() const {
    return static_cast<int>(std::find_if(counts_.begin(), counts_.end(), some) - counts_.begin());
  }
  int maximum() const {
    return static_cast<int>(counts_.rend() - std::find_if(counts_.rbegin(), counts_.rend(), some)) -
           1;
  }
  double mean() const {
    return over([](double value) { return value; });
  }
  double deviation() const {
    const double center = mean();
    return std::sqrt(over([&](double value) { return (value - center) * (value - center); }));
  }

 private:
  static bool some(std::int64_t count) { return count > 0; }
  template <class F>
  double over(F f) const {
    double sum = 0;
    for (std::size_t v = 0; v < counts_.size(); ++v) {
      sum += static_cast<double>(counts_[v]) * f(static_cast<double>(v));
    }
    return sum / static_cast<double>(total_);
  }

  std::array<std::int64_t, 256> counts_{};
  std::int64_t total_ = 0;
};

/// What one pass over the file keeps.
struct Scan {
  std::vector<std::int64_t> sizes;
  Histogram histogram;
  std::vector<std::uint8_t> first;  // of the images to draw
};

std::int64_t product(std::span<const std::int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

Scan scan(data::ByteSource& source, const Subject& subject, int pictures) {
  Scan result;
  data::scan_idx(source, subject.path.string(), [&](const auto& sizes, auto elements) {
    result.sizes = sizes;
    result.histogram.add(elements);
    if (sizes.size() != 3) return;
    const std::int64_t wanted = product(std::span(sizes).subspan(1)) * pictures;
    const auto missing = static_cast<std::size_t>(wanted) - result.first.size();
    const auto taken = elements.first(std::min(missing, elements.size()));
    result.first.insert(result.first.end(), taken.begin(), taken.end());
  });
  return result;
}

std::string content_of(const std::vector<std::int64_t>& sizes) {
  if (sizes.size() == 1) return fmt::format("{} labels", sizes[0]);
  if (sizes.size() == 3) return fmt::format("{} images of {} x {}", sizes[0], sizes[1], sizes[2]);
  return fmt::format("an array of {} dimensions", sizes.size());
}

Table classes_of(const Histogram& histogram) {
  Table table{"classes", {"label", "samples", "part"}, {}};
  for (int label = 0; label <= histogram.maximum(); ++label) {
    const std::int64_t samples = histogram[static_cast<std::size_t>(label)];
    const double part = static_cast<double>(samples) / static_cast<double>(histogram.total());
    table.rows.push_back({label, samples, {part, Form::share}});
  }
  return table;
}

bool recognises_idx(const Subject& subject) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(subject.head.data());
  return !subject.is_folder && data::looks_like_idx({bytes, subject.head.size()});
}

Document describe_idx(const Subject& subject, const Wishes& wishes) {
  const auto source = data::open_bytes(subject.path);
  const Scan found = scan(*source, subject, wishes.pictures);
  const Histogram& histogram = found.histogram;
  const std::uint64_t raw =
      4 + 4 * found.sizes.size() + static_cast<std::uint64_t>(histogram.total());
  Document document{subject.path.string(), "IDX", {}, {}};
  document.facts = {{"holds", content_of(found.sizes)},
                    {"sizes", found.sizes},
                    {"gzip", subject.gzipped},
                    {"stored", bytes_value(subject.stored)},
                    {"raw", bytes_value(raw)}};
  if (histogram.total() == 0) {
    document.warnings.push_back("there is nothing in it");
    return document;
  }
  document.facts.push_back({"min", histogram.minimum()});
  document.facts.push_back({"max", histogram.maximum()});
  if (found.sizes.size() == 1) {
    document.tables.push_back(classes_of(histogram));
  } else {
    constexpr double kWhite = 255;
    document.facts.push_back({"mean of pixel/255", histogram.mean() / kWhite});
    document.facts.push_back({"deviation of pixel/255", histogram.deviation() / kWhite});
  }
  if (!found.first.empty()) {
    document.pictures.push_back(draw(found.first, found.sizes[1], found.sizes[2]));
  }
  return document;
}

}  // namespace

const Format kIdx{recognises_idx, describe_idx};

}  // namespace ringlet::app::inspect
