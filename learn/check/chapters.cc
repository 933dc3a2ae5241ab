#include "learn/check/chapters.h"

#include <string>

namespace ringlet::learn {

namespace {

constexpr Chapter kChapters[] = {
    {0, "split", "", "share_of", Bound::none},
    {1, "naive", "naive", "NaiveAllReduce::run", Bound::star},
    {2, "ring", "ring", "RingAllReduce::run", Bound::share},
    {4, "cost", "ring", "RingAllReduce::path_cost", Bound::share, false, true},
    {5, "repair", "ring", "RingAllReduce::run", Bound::share},
    {7, "overlap", "", "make_buckets", Bound::none},
    {8, "direct", "two-shot", "TwoShotAllReduce::run", Bound::direct},
    {9, "scale", "two-level", "TwoLevelAllReduce::run", Bound::two_levels, true},
};

}  // namespace

const Chapter* find_chapter(std::string_view text) {
  for (const Chapter& chapter : kChapters) {
    if (text == chapter.name || text == std::to_string(chapter.number)) return &chapter;
  }
  return nullptr;
}

}  // namespace ringlet::learn
