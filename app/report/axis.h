// An axis of a plot: maps numbers to positions, and picks the numbers that get a mark: 1, 2, 2.5
// and 5 times a power of ten, or powers of two. At least four marks have a label, except where
// whole numbers are counted and there are not so many, or where nine digits cannot tell them apart.
// No two labels are the same.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace ringlet::app::report {

/// How a number is written beside a mark: "0.25", "1500", "15k", "2.5M", "2.5e-6".
std::string short_number(double value, int digits = 4);
/// 0.915 as "91.5 %".
std::string percent(double value, int digits = 4);
/// A share with so many decimals; more where it would be shown as all and is not.
std::string share_text(double share, int decimals);
/// 0.1234; four digits of what is much smaller or larger.
std::string loss_text(double loss);
/// So many digits of it, or decimals; a dash for what is not finite.
std::string with_digits(double value, int digits = 3);
std::string with_decimals(double value, int decimals);

struct AxisSpec {
  std::string title{};  ///< what is counted, and its unit; may be empty
  bool log = false;     ///< logarithmic; numbers that are not positive cannot be shown
  bool binary = false;  ///< with log: marks at powers of two instead of ten
  bool round = false;   ///< begins and ends at a mark, instead of at the data's ends
  bool whole = false;   ///< counts something: marks at whole numbers only
  /// The range that it shows at least, beside the data: an axis that has to begin at 0 includes 0.
  /// An infinite bound asks for nothing.
  double include_low = std::numeric_limits<double>::infinity();
  double include_high = -std::numeric_limits<double>::infinity();
  bool percent = false;  ///< shares of 1, shown as percentages
  /// How a mark is named; empty: short_number(), or percent().
  std::function<std::string(double)> label{};
  std::string name_of(double value, int digits = 4) const {
    if (label) return label(value);
    return percent ? report::percent(value, digits) : short_number(value, digits);
  }
};

class Axis {
 public:
  struct Mark {
    double value;
    std::string label;  ///< empty: a mark without a word
  };

  /// Shows [low, high] of the data between the positions `begin` and `end`, with about `marks`
  /// marks. Numbers that are not finite, or an empty range, make an axis from 0 to 1 (log: 1
  /// to 10).
  Axis(const AxisSpec& spec, double low, double high, double begin, double end, int marks);

  /// Whether a number has a position.
  bool shows(double value) const;
  /// Whether it lies between the axis' ends.
  bool holds(double value) const { return low_ <= value && value <= high_; }
  /// Always a position between the axis' ends: what is beyond them is there.
  double at(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<Mark>& marks() const { return marks_; }

 private:
  bool has_positions() const;
  void set_range(const AxisSpec& spec, double low, double high);
  void round_to(double step);
  void mark_evenly(const AxisSpec& spec, int marks);
  void mark_every(const AxisSpec& spec, double step);
  void mark_decades(const AxisSpec& spec, int marks);
  void mark_doublings(const AxisSpec& spec);
  double fraction(double value) const;

  bool log_;
  double low_ = 0, high_ = 1;
  double begin_, end_;
  std::vector<Mark> marks_;
};

}  // namespace ringlet::app::report
