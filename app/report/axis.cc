#include "app/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace ringlet::app::report {

namespace {

constexpr int kLeastMarks = 4;  // with a label

/// The next of 1, 2, 2.5, 5 times a power of ten that is not below `step`; only whole numbers
/// where those are counted.
double nice_step(double step, bool whole) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0, 10.0}) {
    const double nice = factor * power;
    if (whole && (nice < 1 || nice != std::floor(nice))) continue;
    if (nice >= step * (1 - 1e-9)) return nice;
  }
  return 1;  // of whole numbers
}

/// How many multiples of `step` an axis from `low` to `high` has; with `round` it goes on to the
/// next ones outside.
double marks_between(double low, double high, double step, bool round) {
  const double first = low / step, last = high / step;
  if (round) return std::ceil(last - 1e-9) - std::floor(first + 1e-9) + 1;
  return std::floor(last + 1e-9) - std::ceil(first - 1e-9) + 1;
}

/// Of so many marks every how many-th has a label: four to seven do.
int every_of(double marks) { return std::max(1, static_cast<int>(marks) / kLeastMarks); }

/// A step for about `marks` marks, and kLeastMarks at least.
double even_step(double low, double high, int marks, bool round, bool whole) {
  double step = 1;
  for (int parts = marks; parts <= marks + 2 * kLeastMarks; ++parts) {
    step = nice_step((high - low) / parts, whole);
    if (marks_between(low, high, step, round) >= kLeastMarks) break;
  }
  return step;
}

/// The digits that say multiples of `step` to a hundredth of it; of numbers that are far from 0
/// beside their differences not all that they would need, which have no room.
int digits_for(std::int64_t first, std::int64_t last, double step) {
  constexpr int kDigits = 4, kMostDigits = 9;
  const auto is_near = [&](std::int64_t k, int digits) {
    const double value = step * static_cast<double>(k);
    return std::abs(std::stod(fmt::format("{:.{}g}", value, digits)) - value) <= step / 100;
  };
  int digits = kDigits;
  for (std::int64_t k = first; k <= last; ++k) {
    while (digits < kMostDigits && !is_near(k, digits)) ++digits;
  }
  return digits;
}

/// Calls f(decade, factor, value) for each factor times a power of ten from `low` to `high`.
template <class F>
void for_each_factor(double low, double high, const std::vector<int>& factors, F f) {
  const auto first = static_cast<int>(std::floor(std::log10(low)));
  const auto last = static_cast<int>(std::ceil(std::log10(high)));
  for (int decade = first; decade <= last; ++decade) {
    for (const int factor : factors) {
      const double value = factor * std::pow(10.0, decade);
      if (!std::isfinite(value)) continue;
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9)) f(decade, factor, value);
    }
  }
}

int count_factors(double low, double high, const std::vector<int>& factors) {
  int count = 0;
  for_each_factor(low, high, factors, [&](int, int, double) { ++count; });
  return count;
}

/// Which multiples of powers of ten get a label: the powers alone where they are enough, else as
/// many as have room.
std::vector<int> named_factors(double low, double high) {
  constexpr int kMostMarks = 8;
  if (count_factors(low, high, {1}) >= kLeastMarks) return {1};
  if (count_factors(low, high, {1, 2, 5}) <= kMostMarks) return {1, 2, 5};
  return {1, 5};
}

}  // namespace

std::string with_digits(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "\u2013";
}

std::string with_decimals(double value, int decimals) {
  return std::isfinite(value) ? fmt::format("{:.{}f}", value, decimals) : "\u2013";
}

std::string short_number(double value, int digits) {
  const auto scaled = [&](double unit, const char* suffix) {
    return with_digits(value / unit, digits) + suffix;
  };
  const double size = std::abs(value);
  if (!(size < 1e12)) return with_digits(value, digits);
  if (size >= 1e9) return scaled(1e9, "G");
  if (size >= 1e6) return scaled(1e6, "M");
  if (size >= 1e4) return scaled(1e3, "k");
  if (size >= 1e-4 || size == 0) return scaled(1, "");
  std::string text = fmt::format("{:.{}e}", value, digits - 1);  // 2.500e-06
  if (const auto zero = text.find("e-0"); zero != text.npos) text.erase(zero + 2, 1);
  const std::size_t end = text.find('e');
  if (text.find('.') == text.npos) return text;
  std::size_t last = text.find_last_not_of('0', end - 1);
  if (text[last] == '.') --last;
  return text.erase(last + 1, end - last - 1);
}

std::string percent(double value, int digits) { return with_digits(100 * value, digits) + " %"; }

std::string share_text(double share, int decimals) {
  constexpr int kMost = 6;
  std::string text = with_decimals(100 * share, decimals);
  while (share < 1 && text.starts_with("100") && decimals < kMost) {
    text = with_decimals(100 * share, ++decimals);
  }
  return text;
}

std::string loss_text(double loss) {
  const double size = std::abs(loss);
  return size == 0 || (size >= 0.001 && size < 1e6) ? with_decimals(loss, 4) : with_digits(loss, 4);
}

Axis::Axis(const AxisSpec& spec, double low, double high, double begin, double end, int marks)
    : log_(spec.log), begin_(begin), end_(end) {
  set_range(spec, std::min(low, spec.include_low), std::max(high, spec.include_high));
  if (log_ && spec.binary) {
    mark_doublings(spec);
  } else if (log_) {
    mark_decades(spec, marks);
  } else {
    mark_evenly(spec, marks);
  }
}

void Axis::set_range(const AxisSpec& spec, double low, double high) {
  const bool usable = std::isfinite(low) && std::isfinite(high) && low <= high;
  low_ = usable && (!spec.log || low > 0) ? low : (spec.log ? 1 : 0);
  high_ = usable && (!spec.log || low > 0) ? high : (spec.log ? 10 : 1);
  if (has_positions()) return;
  if (spec.log) {  // one number alone stands in the middle
    low_ /= 2;
    high_ *= 2;
  } else if (spec.percent) {  // but no share goes beyond 0 or 1
    low_ = std::max(low_ - 0.1, std::min(low_, 0.0));
    high_ = std::min(high_ + 0.1, std::max(high_, 1.0));
  } else {
    const double margin = low_ == 0 ? 1 : std::abs(low_) / 2;
    low_ -= margin;
    high_ += margin;
  }
  if (has_positions()) return;  // not where numbers are as small or large as a double can be
  low_ = spec.log ? 1 : 0;
  high_ = spec.log ? 10 : 1;
}

bool Axis::has_positions() const {
  constexpr double kLeast = 1e-290,
                   kMost = 1e290;  // beyond, marks and the steps between are 0 or infinite
  if (log_) return low_ > kLeast && low_ < high_ && high_ < kMost && high_ / low_ < kMost;
  return high_ - low_ > kLeast && std::abs(low_) < kMost && std::abs(high_) < kMost;
}

void Axis::round_to(double step) {
  low_ = step * std::floor(low_ / step + 1e-9);
  high_ = step * std::ceil(high_ / step - 1e-9);
}

void Axis::mark_evenly(const AxisSpec& spec, int marks) {
  const double step = even_step(low_, high_, marks, spec.round, spec.whole);
  if (spec.round) round_to(step);
  mark_every(spec, step);
}

void Axis::mark_every(const AxisSpec& spec, double step) {
  const double low = std::ceil(low_ / step - 1e-9), high = std::floor(high_ / step + 1e-9);
  constexpr double kMostMarks = 1000, kCountable = 1e17;
  if (!(high - low < kMostMarks && std::abs(low) < kCountable)) return;  // a double's last digits
  const auto first = static_cast<std::int64_t>(low), last = static_cast<std::int64_t>(high);
  const int digits = digits_for(first, last, step);
  marks_.clear();
  for (std::int64_t k = first; k <= last; ++k) {
    const double value = step * static_cast<double>(k);
    std::string label = spec.name_of(value, digits);
    if (marks_.empty() || label != marks_.back().label) marks_.push_back({value, std::move(label)});
  }
}

void Axis::mark_decades(const AxisSpec& spec, int marks) {
  if (spec.round) {
    low_ = std::pow(10.0, std::floor(std::log10(low_) + 1e-9));
    high_ = std::pow(10.0, std::ceil(std::log10(high_) - 1e-9));
  }
  const double decades = std::log10(high_ / low_);
  const int every = every_of(marks_between(std::log10(low_), std::log10(high_), 1, false));
  const std::vector<int> named = named_factors(low_, high_);
  for_each_factor(low_, high_, {1, 2, 5}, [&](int decade, int factor, double value) {
    const bool has_name = std::find(named.begin(), named.end(), factor) != named.end();
    if (decades > 3 && factor != 1 && !has_name) return;
    const bool shows_name = has_name && (named.size() > 1 || decade % every == 0);
    marks_.push_back({value, shows_name ? spec.name_of(value) : ""});
  });
  if (marks_.size() < kLeastMarks) {
    mark_every(spec, even_step(low_, high_, marks, false, spec.whole));
  }
}

void Axis::mark_doublings(const AxisSpec& spec) {
  if (spec.round) {
    low_ = std::exp2(std::floor(std::log2(low_) + 1e-9));
    high_ = std::exp2(std::ceil(std::log2(high_) - 1e-9));
  }
  const auto first = static_cast<int>(std::ceil(std::log2(low_) - 1e-9));
  const auto last = static_cast<int>(std::floor(std::log2(high_) + 1e-9));
  if (last - first + 1 < kLeastMarks) {  // as large a power of two as gives enough
    double step = std::exp2(std::floor(std::log2(high_ - low_)));
    while (marks_between(low_, high_, step, false) < kLeastMarks) step /= 2;
    return mark_every(spec, step);
  }
  const int every = every_of(last - first + 1);
  for (int power = first; power <= last; ++power) {
    const double value = std::exp2(power);
    marks_.push_back({value, (power - first) % every == 0 ? spec.name_of(value) : ""});
  }
}

bool Axis::shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }

double Axis::fraction(double value) const {
  if (log_) return std::log(value / low_) / std::log(high_ / low_);
  return (value - low_) / (high_ - low_);
}

double Axis::at(double value) const {
  const double part = fraction(value);
  return begin_ + (std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : 0) * (end_ - begin_);
}

}  // namespace ringlet::app::report
