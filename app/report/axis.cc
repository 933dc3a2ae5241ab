#include "app/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ringlet::app::report {

namespace {

/// The next of 1, 2, 2.5, 5 times a power of ten that is not below `step`.
double nice_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string scaled(double value, double unit, const char* suffix) {
  return fmt::format("{:.4g}{}", value / unit, suffix);
}

}  // namespace

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 1e12) return fmt::format("{:.3g}", value);
  if (size >= 1e9) return scaled(value, 1e9, "G");
  if (size >= 1e6) return scaled(value, 1e6, "M");
  if (size >= 1e4) return scaled(value, 1e3, "k");
  if (size >= 1e-4 || size == 0) return fmt::format("{:.4g}", value);
  std::string text = fmt::format("{:.0e}", value);  // 1e-05
  if (const auto zero = text.find("e-0"); zero != text.npos) text.erase(zero + 2, 1);
  return text;
}

std::string percent(double value) { return fmt::format("{:.4g} %", 100 * value); }

Axis::Axis(const AxisSpec& spec, double low, double high, double begin, double end, int marks)
    : log_(spec.log), begin_(begin), end_(end) {
  set_range(spec, std::min(low, spec.include_low), std::max(high, spec.include_high));
  if (log_ && spec.binary) {
    mark_doublings(spec, marks);
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
  if (low_ < high_) return;
  if (spec.log) {  // one number alone stands in the middle
    low_ /= 2;
    high_ *= 2;
  } else {
    const double margin = low_ == 0 ? 1 : std::abs(low_) / 2;
    low_ -= margin;
    high_ += margin;
  }
}

void Axis::mark_evenly(const AxisSpec& spec, int marks) {
  const double nice = nice_step((high_ - low_) / marks);
  const double step = spec.whole ? std::ceil(nice) : nice;
  if (spec.round) {
    low_ = step * std::floor(low_ / step + 1e-9);
    high_ = step * std::ceil(high_ / step - 1e-9);
  }
  const auto first = static_cast<std::int64_t>(std::ceil(low_ / step - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(high_ / step + 1e-9));
  for (std::int64_t k = first; k <= last; ++k) {
    const double value = step * static_cast<double>(k);
    marks_.push_back({value, spec.name_of(value)});
  }
}

void Axis::mark_decades(const AxisSpec& spec, int marks) {
  if (spec.round) {
    low_ = std::pow(10.0, std::floor(std::log10(low_) + 1e-9));
    high_ = std::pow(10.0, std::ceil(std::log10(high_) - 1e-9));
  }
  const double decades = std::log10(high_ / low_);
  const int every = std::max(1, static_cast<int>(std::ceil(decades / marks)));
  const auto first = static_cast<int>(std::floor(std::log10(low_)));
  const auto last = static_cast<int>(std::ceil(std::log10(high_)));
  for (int decade = first; decade <= last; ++decade) {
    for (const int factor : {1, 2, 5}) {
      const double value = factor * std::pow(10.0, decade);
      if (value < low_ * (1 - 1e-9) || value > high_ * (1 + 1e-9)) continue;
      const bool named = factor == 1 ? decade % every == 0 : decades < 1.5;
      if (factor != 1 && decades > 3) continue;
      marks_.push_back({value, named ? spec.name_of(value) : ""});
    }
  }
}

void Axis::mark_doublings(const AxisSpec& spec, int marks) {
  if (spec.round) {
    low_ = std::exp2(std::floor(std::log2(low_) + 1e-9));
    high_ = std::exp2(std::ceil(std::log2(high_) - 1e-9));
  }
  const auto first = static_cast<int>(std::ceil(std::log2(low_) - 1e-9));
  const auto last = static_cast<int>(std::floor(std::log2(high_) + 1e-9));
  const int every = std::max(1, (last - first + marks - 1) / marks);
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

double Axis::at(double value) const { return begin_ + fraction(value) * (end_ - begin_); }

}  // namespace ringlet::app::report
