// The form of stages that is written by hand (nn/stages/stages.h).
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "base/error.h"
#include "nn/stages/stages.h"

namespace ringlet::nn {

namespace {

/// One stage as it is written.
struct Item {
  std::string text;  // without devices
  std::string devices{};
  bool has_devices = false;
  Units::Range range{};
};

class StageParser {
 public:
  StageParser(const std::string& text, const Units& units) : text_(text), units_(units) {}

  Stages parse() {
    units_.require_sequence();
    for (std::size_t begin = 0; begin <= text_.size();) {
      const std::size_t end = std::min(text_.find(',', begin), text_.size());
      add(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    units_.require_stages(static_cast<int>(items_.size()));
    for (Item& item : items_) find(item);
    check_overlaps();
    check_order();
    check_gaps();
    check_devices();
    std::vector<int> begins;
    for (std::size_t i = 1; i < items_.size(); ++i) begins.push_back(items_[i].range.begin);
    Stages stages = cut_before(units_, begins);
    for (std::size_t i = 0; i < items_.size(); ++i) stages[i].devices = items_[i].devices;
    return stages;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw ContractError("stages: " + what + units_.all());
  }

  void add(const std::string& written) {
    const std::size_t sign = written.find('=');
    Item item{.text = written.substr(0, sign), .has_devices = sign != std::string::npos};
    if (item.has_devices) item.devices = written.substr(sign + 1);
    const std::string number = std::to_string(items_.size() + 1);
    if (item.text.empty()) {
      refuse("stage number " + number + " of '" + text_ +
             "' is empty; write FIRST..LAST, with a comma between two stages");
    }
    if (item.has_devices && item.devices.empty()) {
      refuse("'" + written + "' names no device behind its '='; write one, or leave the '=' out");
    }
    items_.push_back(item);
  }

  void find(Item& item) const {
    const std::size_t dots = item.text.find("..");
    if (dots == std::string::npos) {
      item.range = units_.find(item.text);
      return;
    }
    const std::string first = item.text.substr(0, dots), last = item.text.substr(dots + 2);
    if (first.empty() || last.empty()) {
      refuse("'" + item.text + "' has a name on one side of its '..' alone; write FIRST..LAST");
    }
    const Units::Range from = units_.find(first), to = units_.find(last);
    if (to.end <= from.begin) {
      refuse("'" + item.text + "' ends before it begins; write '" + last + ".." + first + "'");
    }
    item.range = {from.begin, to.end};
  }

  void check_overlaps() const {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const Item &a = items_[j], &b = items_[i];
        const Units::Range both{std::max(a.range.begin, b.range.begin),
                                std::min(a.range.end, b.range.end)};
        if (both.begin >= both.end) continue;
        if (a.text == b.text) refuse("'" + a.text + "' is there twice; write each stage once");
        refuse("'" + a.text + "' and '" + b.text + "' both have " + units_.list(both) +
               "; each unit belongs to one stage");
      }
    }
  }

  void check_order() const {
    for (std::size_t i = 1; i < items_.size(); ++i) {
      const Item &a = items_[i - 1], &b = items_[i];
      if (b.range.begin > a.range.begin) continue;
      refuse("'" + a.text + "' stands before '" + b.text +
             "', which runs first; write stages in the model's order");
    }
  }

  void check_gaps() const {
    std::string missing;
    const auto require_none = [&](int begin, int end) {
      if (begin >= end) return;
      missing += (missing.empty() ? "" : ", ") + units_.list({begin, end});
    };
    int next = 0;
    for (const Item& item : items_) {
      require_none(next, item.range.begin);
      next = item.range.end;
    }
    require_none(next, units_.count());
    if (!missing.empty()) refuse("no stage has " + missing + "; each unit belongs to one stage");
  }

  void check_devices() const {
    for (const Item& item : items_) {
      if (item.has_devices == items_.front().has_devices) continue;
      const auto& with = item.has_devices ? item : items_.front();
      const auto& without = item.has_devices ? items_.front() : item;
      refuse("'" + with.text + "' has a device and '" + without.text +
             "' has none; give each stage one, or none");
    }
  }

  const std::string& text_;
  const Units& units_;
  std::vector<Item> items_;
};

}  // namespace

Stages parse_stages(const std::string& text, const Units& units) {
  return StageParser(text, units).parse();
}

}  // namespace ringlet::nn
