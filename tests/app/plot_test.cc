// Plots: marks of axes, positions of numbers, what becomes of thousands of points, and what is
// drawn.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/report/axis.h"
#include "app/report/curve.h"
#include "app/report/end_labels.h"
#include "app/report/html.h"
#include "app/report/short_names.h"
#include "app/report/svg_plot.h"

namespace ringlet::app::report {
namespace {

std::vector<std::string> labels_of(const Axis& axis) {
  std::vector<std::string> labels;
  for (const Axis::Mark& mark : axis.marks()) {
    if (!mark.label.empty()) labels.push_back(mark.label);
  }
  return labels;
}

using Words = std::vector<std::string>;

TEST(LinearAxis, CountsInWholeNumbers) {
  EXPECT_EQ(labels_of(Axis({}, 1, 2, 0, 100, 5)).size(), 6U);  // 1, 1.2, ...
  EXPECT_EQ(labels_of(Axis({.whole = true}, 1, 2, 0, 100, 5)), (Words{"1", "2"}));
  EXPECT_EQ(labels_of(Axis({.whole = true}, 1, 10, 0, 100, 4)), (Words{"2", "4", "6", "8", "10"}));
}

TEST(ShortNumber, IsShort) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(-1500), "-1500");
  EXPECT_EQ(short_number(15000), "15k");
  EXPECT_EQ(short_number(2.5e6), "2.5M");
  EXPECT_EQ(short_number(3e9), "3G");
  EXPECT_EQ(short_number(1e-5), "1e-5");
  EXPECT_EQ(short_number(2.5e-6), "2.5e-6");
  EXPECT_EQ(short_number(-1.20345e-12), "-1.203e-12");
  EXPECT_EQ(short_number(1.20345e-12, 1), "1e-12");
  EXPECT_EQ(percent(0.915), "91.5 %");
}

/// What a label such as "15k", "2.5e-6" or "91.5 %" says.
double number_in(const std::string& label) {
  std::size_t end = 0;
  const double number = std::stod(label, &end);
  const std::string unit = label.substr(end);
  const double factor = unit == "k" ? 1e3 : unit == "M" ? 1e6 : unit == "G" ? 1e9 : 1;
  return unit == " %" ? number / 100 : number * factor;
}

TEST(Axis, SaysItsMarks) {
  for (const double top : {3e-7, 1.2e-5, 1.2e-4, 0.0012, 1.0, 7.3, 123456.0, 3e11, 4e13}) {
    for (const double share : {0.0, 0.5, 0.99, 0.9999}) {
      for (const bool log : {false, true}) {
        if (log && share == 0) continue;
        for (const bool percent : {false, true}) {
          const Axis axis({.log = log, .percent = percent}, share * top, top, 0, 100, 5);
          const double span = axis.high() - axis.low();
          std::vector<std::string> labels;
          for (const Axis::Mark& mark : axis.marks()) {
            if (mark.label.empty()) continue;
            EXPECT_NEAR(number_in(mark.label), mark.value, span / 400) << mark.label;
            labels.push_back(mark.label);
          }
          EXPECT_GE(labels.size(), 4u) << share * top << " to " << top;
          std::sort(labels.begin(), labels.end());
          EXPECT_EQ(std::adjacent_find(labels.begin(), labels.end()), labels.end());
        }
      }
    }
  }
}

TEST(Axis, HasNoTwoMarksOfOneLabel) {
  EXPECT_EQ(labels_of(Axis({}, 2.302585093, 2.302585093 + 3e-10, 0, 100, 5)),
            (Words{"2.30258509"}));
  const auto rough = [](double value) { return fmt::format("{:.0f}", value); };
  EXPECT_EQ(labels_of(Axis({.label = rough}, 1, 2.4, 0, 100, 5)), (Words{"1", "2"}));
}

TEST(LinearAxis, MarksRoundNumbers) {
  EXPECT_EQ(labels_of(Axis({}, 1, 10, 0, 100, 6)), (Words{"2", "4", "6", "8", "10"}));
  EXPECT_EQ(labels_of(Axis({.round = true}, 0.13, 0.61, 0, 100, 5)),
            (Words{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"}));
  EXPECT_EQ(labels_of(Axis({.round = true, .include_low = 0}, 0.3, 1.9, 0, 100, 5)),
            (Words{"0", "0.5", "1", "1.5", "2"}));
  EXPECT_EQ(labels_of(Axis({.percent = true}, 0.8, 0.9, 0, 100, 2)),
            (Words{"80 %", "82.5 %", "85 %", "87.5 %", "90 %"}));
}

TEST(LinearAxis, UsesThePlot) {
  const Axis accuracy({.round = true, .percent = true}, 0.826, 0.913, 0, 100, 5);
  EXPECT_DOUBLE_EQ(accuracy.low(), 0.82);
  EXPECT_DOUBLE_EQ(accuracy.high(), 0.92);
  EXPECT_EQ(labels_of(Axis({.round = true, .include_low = 0}, 0.004, 0.1, 0, 100, 5)),
            (Words{"0", "0.02", "0.04", "0.06", "0.08", "0.1"}));
}

TEST(LinearAxis, ShowsNoShareBeyondTheWhole) {
  const Axis one({.round = true, .percent = true}, 0.985, 0.985, 0, 100, 5);
  EXPECT_LT(one.low(), 0.985);
  EXPECT_EQ(one.high(), 1);
  EXPECT_EQ(Axis({.round = true, .percent = true}, 0.01, 0.01, 0, 100, 5).low(), 0);
}

/// Whether it is 1, 2, 2.5 or 5 times a power of ten.
bool is_nice(double step) {
  const double digits = step / std::pow(10.0, std::floor(std::log10(step * (1 + 1e-6))));
  bool nice = false;
  for (const double wanted : {1.0, 2.0, 2.5, 5.0}) nice = nice || std::abs(digits - wanted) < 1e-5;
  return nice;
}

TEST(LinearAxis, NamesFourNiceNumbersAtLeast) {
  for (const double low : {0.0, 0.07, 0.5, 1.0, 3.3, 98.0}) {
    for (double length = 0.003; length < 5000; length *= 1.07) {
      for (const bool round : {false, true}) {
        const Axis axis({.round = round}, low, low + length, 0, 100, 5);
        const auto& marks = axis.marks();
        ASSERT_GE(marks.size(), 4u) << low << " + " << length;
        ASSERT_LE(marks.size(), 10u) << low << " + " << length;
        EXPECT_NE(marks[0].label, marks[1].label) << low << " + " << length;
        EXPECT_TRUE(is_nice(marks[1].value - marks[0].value)) << low << " + " << length;
        EXPECT_GT(length, 0.45 * (axis.high() - axis.low())) << low << " + " << length;
      }
    }
  }
}

TEST(LogAxis, NamesFourNumbersAtLeast) {
  for (double factor = 1.1; factor < 1e9; factor *= 1.3) {
    for (const bool binary : {false, true}) {
      const AxisSpec spec{.log = true, .binary = binary};
      const Words labels = labels_of(Axis(spec, 1.47, 1.47 * factor, 0, 300, 5));
      EXPECT_GE(labels.size(), 4u) << factor << (binary ? " by two" : "");
      EXPECT_LE(labels.size(), 10u) << factor << (binary ? " by two" : "");
    }
  }
}

TEST(LinearAxis, GivesPositionsBetweenItsEnds) {
  const Axis axis({}, 10, 20, 200, 100, 5);
  EXPECT_DOUBLE_EQ(axis.at(10), 200);
  EXPECT_DOUBLE_EQ(axis.at(15), 150);
  EXPECT_DOUBLE_EQ(axis.at(20), 100);
  EXPECT_FALSE(axis.shows(NAN));
}

TEST(LinearAxis, BearsOneNumberAloneAndNoneAtAll) {
  const Axis one({}, 4, 4, 0, 100, 5);
  EXPECT_DOUBLE_EQ(one.at(4), 50);
  EXPECT_FALSE(labels_of(one).empty());
  const Axis none({}, INFINITY, -INFINITY, 0, 100, 5);
  EXPECT_EQ(none.low(), 0);
  EXPECT_EQ(none.high(), 1);
}

TEST(LogAxis, MarksDecadesAndInAShortRangeWhatLiesBetween) {
  EXPECT_EQ(labels_of(Axis({.log = true}, 1, 1000, 0, 300, 6)), (Words{"1", "10", "100", "1000"}));
  EXPECT_EQ(labels_of(Axis({.log = true}, 1, 20, 0, 300, 6)), (Words{"1", "2", "5", "10", "20"}));
  EXPECT_LE(labels_of(Axis({.log = true}, 1e-12, 1e12, 0, 300, 6)).size(), 7u);
  EXPECT_EQ(labels_of(Axis({.log = true, .round = true}, 3, 70, 0, 300, 6)),
            (Words{"1", "2", "5", "10", "20", "50", "100"}));
}

TEST(LogAxis, NamesEachPowerOfTenAndItsHalfWhereThatIsEnough) {
  EXPECT_EQ(labels_of(Axis({.log = true}, 1.5, 6000, 0, 300, 5)),
            (Words{"5", "10", "50", "100", "500", "1000", "5000"}));
}

TEST(LogAxis, MarksPowersOfTwoWhereThoseAreCounted) {
  const AxisSpec binary{.log = true, .binary = true};
  EXPECT_EQ(labels_of(Axis(binary, 1, 8, 0, 300, 6)), (Words{"1", "2", "4", "8"}));
  EXPECT_EQ(labels_of(Axis(binary, 4, 1024, 0, 300, 4)), (Words{"4", "16", "64", "256", "1024"}));
  EXPECT_EQ(Axis(binary, 4, 1024, 0, 300, 4).marks().size(), 9u);
  EXPECT_EQ(labels_of(Axis(binary, 4, 16, 0, 300, 6)), (Words{"4", "8", "12", "16"}));
}

TEST(LogAxis, GivesEqualRoomToEqualFactors) {
  const Axis axis({.log = true}, 1, 10000, 0, 400, 5);
  EXPECT_NEAR(axis.at(10), 100, 1e-9);
  EXPECT_NEAR(axis.at(1000), 300, 1e-9);
  EXPECT_FALSE(axis.shows(0));
  EXPECT_FALSE(axis.shows(-1));
}

Curve ramp(std::size_t points) {
  Curve curve;
  for (std::size_t i = 0; i < points; ++i) {
    curve.add(static_cast<double>(i), static_cast<double>(i));
  }
  return curve;
}

TEST(Curves, AreSmoothedFromTheFirstPointOn) {
  Curve curve;
  for (int i = 0; i < 100; ++i) curve.add(i, i % 2 == 0 ? 1 : 3);
  const Curve smooth = smoothed(curve, 20);
  EXPECT_DOUBLE_EQ(smooth.y[0], 1);
  EXPECT_NEAR(smooth.y[99], 2, 0.1);
  EXPECT_EQ(smoothed(curve, 1).y, curve.y);
  curve.y[50] = NAN;
  EXPECT_TRUE(std::isnan(smoothed(curve, 20).y[50]));
  EXPECT_NEAR(smoothed(curve, 20).y[99], 2, 0.1);
}

TEST(Curves, AreThinnedToTheirMeans) {
  EXPECT_EQ(thinned(ramp(5), 10).size(), 5u);
  const Curve few = thinned(ramp(1000), 10);
  ASSERT_EQ(few.size(), 10u);
  EXPECT_DOUBLE_EQ(few.y[0], 49.5);
  EXPECT_DOUBLE_EQ(few.y[9], 949.5);
}

TEST(Curves, HaveQuantilesOfWhatCameBefore) {
  const Curve half = rolling_quantile(ramp(1000), 10, 101, 0.5);
  EXPECT_EQ(half.x, thinned(ramp(1000), 10).x);
  EXPECT_DOUBLE_EQ(half.y[0], 50);   // of 0 to 99: there are no more before
  EXPECT_DOUBLE_EQ(half.y[9], 949);  // of 899 to 999
  EXPECT_DOUBLE_EQ(rolling_quantile(ramp(1000), 10, 101, 0.9).y[9], 989);
  EXPECT_DOUBLE_EQ(rolling_quantile(ramp(30), 400, 1, 0).y[29], 20);  // ten points at least
  Curve gap;
  gap.add(1, NAN);
  EXPECT_TRUE(std::isnan(rolling_quantile(gap, 10, 10, 0.5).y[0]));
}

TEST(Curves, KeepTheirSpikesInTheOutline) {
  Curve curve;
  for (int i = 0; i < 1000; ++i) curve.add(i, i == 500 ? 9 : i == 503 ? -9 : 0);
  const Curve few = outline(curve, 20);
  EXPECT_LE(few.size(), 20u);
  EXPECT_EQ(*std::max_element(few.y.begin(), few.y.end()), 9);
  EXPECT_EQ(*std::min_element(few.y.begin(), few.y.end()), -9);
  EXPECT_TRUE(std::is_sorted(few.x.begin(), few.x.end()));
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Curves, KeepSpikesBesideGaps) {
  Curve curve;
  for (int i = 0; i < 1000; ++i) {
    const int k = i % 10;
    curve.add(i, k == 0 || k == 7 ? NAN : k == 4 ? 50 : k == 5 ? -3 : 1);
  }
  const Curve few = outline(curve, 200);
  EXPECT_EQ(std::ranges::count(few.y, 50), 100);
  EXPECT_EQ(std::ranges::count(few.y, -3), 100);
}

TEST(SvgPlot, KeepsStepsAndBytesAsTheyAre) {
  Curve curve;
  for (const double x : {123456789.0, 1099511627776.0, 3e15 + 1, 0.125, 1e5 / 3}) curve.add(x, 1);
  const std::string html = figure_of(Plot{.id = "p", .series = {{"s", curve}}});
  EXPECT_NE(html.find("data-x=\"123456789,1099511627776,3000000000000001,0.125,33333.3333\""),
            html.npos)
      << html;
  curve = {{3000000001, 3000000301}, {1, 2}};
  EXPECT_NE(figure_of(Plot{.id = "p", .series = {{"s", curve}}})
                .str()
                .find("data-xrange=\"3000000001,3000000301,0\""),
            std::string::npos);
}

TEST(SvgPlot, DrawsLinesWithGapsAndKeepsTheirNumbers) {
  Curve curve;
  for (const double y : {1.0, 2.0, double(NAN), 4.0, 5.0}) {
    curve.add(static_cast<double>(curve.size()), y);
  }
  const std::string html = figure_of(Plot{.id = "p", .title = "A < B", .series = {{"s", curve}}});
  EXPECT_NE(html.find("<figure class=\"plot\" id=\"p\">"), html.npos);
  EXPECT_NE(html.find("A &lt; B"), html.npos);
  EXPECT_NE(html.find("data-x=\"0,1,2,3,4\" data-y=\"1,2,,4,5\""), html.npos);
  const auto line = html.substr(html.find("<path d=\"M56.0"));
  EXPECT_EQ(count_of(line.substr(0, line.find("/>")), "M"), 2u);  // the gap
  EXPECT_EQ(html.find("nan"), html.npos);
}

TEST(SvgPlot, LeavesOutWhatALogarithmCannotShow) {
  Curve curve;
  for (const double y : {0.0, 10.0, 100.0}) curve.add(static_cast<double>(curve.size() + 1), y);
  Plot plot{.id = "p", .title = "t", .series = {{"s", curve, 0, Look::points}}};
  plot.x.log = plot.y.log = true;
  const std::string html = figure_of(plot);
  EXPECT_EQ(count_of(html, "<circle"), 2u);
  EXPECT_EQ(html.find("inf"), html.npos);
}

TEST(SvgPlot, APointAloneIsSeen) {
  Curve curve;
  curve.add(1, 2);
  EXPECT_EQ(count_of(figure_of(Plot{.id = "p", .series = {{"s", curve}}}), "<circle"), 1u);
}

TEST(EndLabels, MoveApartAsLittleAsTheyMust) {
  using Positions = std::vector<double>;
  EXPECT_EQ(spread_out({10, 40, 90}, 12, 0, 100), (Positions{10, 40, 90}));
  EXPECT_EQ(spread_out({50, 50, 50}, 12, 0, 100), (Positions{38, 50, 62}));
  EXPECT_EQ(spread_out({20, 50, 52}, 12, 0, 100), (Positions{20, 45, 57}));
  EXPECT_EQ(spread_out({99, 100}, 12, 0, 100), (Positions{88, 100}));
  EXPECT_EQ(spread_out({0, 1, 2}, 12, 0, 100), (Positions{0, 12, 24}));
  EXPECT_EQ(spread_out({0, 0, 0, 90, 95, 100}, 20, 0, 100), (Positions{0, 20, 40, 60, 80, 100}));
  EXPECT_TRUE(spread_out({}, 12, 0, 100).empty());
}

TEST(EndLabels, KeepBeginAndEndOfALongName) {
  EXPECT_EQ(shortened("halving-doubling", 16), "halving-doubling");
  EXPECT_EQ(shortened("runs/first/a-long-name", 9), "runs\u2026name");
  EXPECT_EQ(shortened("\u00e4\u00f6\u00fc\u00e4\u00f6\u00fc", 5), "\u00e4\u00f6\u2026\u00f6\u00fc");
}

TEST(ShortNames, TellNamesApart) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(shortened(Names{"ring", "resnet18-cifar10-lr0.1-cosine-b128",
                            "resnet18-cifar10-lr0.25-cosine-b128"},
                      22),
            (Names{"ring", "\u2026lr0.1\u2026", "\u2026lr0.25\u2026"}));
  EXPECT_EQ(
      shortened(Names{"resnet18-cifar10-lr0.1-cosine-b128", "resnet18-cifar10-lr0.25-cosine-b128"},
                6),
      (Names{"lr0.1", "lr0.25"}));
  EXPECT_EQ(shortened(Names{"aaaaaaaa1aaaaaaaa", "aaaaaaaa2aaaaaaaa"}, 8),
            (Names{"\u20261\u2026", "\u20262\u2026"}));
  // One is within the other; and names that are the same stay so.
  EXPECT_EQ(shortened(Names{"aaaa-bbbb-bbbb-cccc", "aaaa-bbbb-bbbb-bbbb-cccc"}, 9).front(),
            "aaaa\u2026cccc");
  EXPECT_EQ(shortened(Names{"aaaa-bbbb-cccc", "aaaa-bbbb-cccc"}, 9),
            (Names{"aaaa\u2026cccc", "aaaa\u2026cccc"}));
  EXPECT_EQ(shortened(Names{"\u00e4\u00e4\u00e4\u00f6\u00e4\u00e4\u00e4",
                            "\u00e4\u00e4\u00e4\u00e5\u00e4\u00e4\u00e4"},
                      5),
            (Names{"\u2026\u00f6\u2026", "\u2026\u00e5\u2026"}));
}

TEST(ShortNames, CountTwoColumnsForBroadLetters) {
  EXPECT_EQ(columns_of("a\u5b9e\u9a8c\U0001F600\uD55C\u00e4"), 10u);
  EXPECT_EQ(shortened("\u5b9e\u9a8c\u4e00\u53f7\u5b66\u4e60", 9), "\u5b9e\u9a8c\u2026\u5b66\u4e60");
  EXPECT_GT(width_of("\u5b9e\u9a8c"), 1.5 * width_of("ab"));
}

TEST(EndLabels, HaveRoomForWideLetters) {
  const auto room = [](const char* name) { return room_for({{.name = name, .text = name}}); };
  EXPECT_GT(room("MMMMmmmm"), 1.5 * room("iiiillll") - 10);
  EXPECT_EQ(room("runs/first"), room("runs/other"));
}

/// The positions of the names of lines, from the top down.
std::vector<double> name_positions(const std::string& html) {
  std::vector<double> positions;
  for (auto at = html.find("<text class=\"name"); at != html.npos;
       at = html.find("<text class=\"name", at + 1)) {
    positions.push_back(std::stod(html.substr(html.find(" y=\"", at) + 4)));
  }
  return positions;
}

TEST(SvgPlot, NamesItsLinesAtTheirEndsOneBelowTheOther) {
  const Series line{"one", ramp(3)};
  EXPECT_TRUE(name_positions(figure_of(Plot{.id = "p", .series = {line}})).empty());
  Plot plot{.id = "p", .series = {line, {"faint one", ramp(3), 0, Look::faint}}};
  plot.series.push_back({.name = "quiet one", .curve = ramp(3), .named = false});
  plot.series.push_back({.name = "empty one"});
  for (const char* name : {"<two>", "three"}) plot.series.push_back({name, ramp(3), kGrey});
  const std::string html = figure_of(plot);
  EXPECT_EQ(html.find("legend"), html.npos);
  for (const char* name : {"faint one", "quiet one", "empty one", "<two>"}) {
    EXPECT_EQ(html.find(std::string(name) + "<title>"), html.npos) << name;
  }
  EXPECT_NE(html.find("&lt;two&gt;<title>"), html.npos);
  EXPECT_EQ(count_of(html, "class=\"name c0 strong\""), 1u);
  const std::vector<double> positions = name_positions(html);
  ASSERT_EQ(positions.size(), 3u);
  EXPECT_GE(positions[1] - positions[0], 13.5);
  EXPECT_GE(positions[2] - positions[1], 13.5);
}

TEST(SvgPlot, NamesAsManyLinesAsHaveRoomAndThoseThatStandOutFirst) {
  Plot plot{.id = "p", .note = "n"};
  for (int i = 0; i < 40; ++i) plot.series.push_back({fmt::format("s{}", i), ramp(3), kGrey});
  plot.series.back().color = kBest;
  const std::string html = figure_of(plot);
  const std::vector<double> positions = name_positions(html);
  EXPECT_GE(positions.size(), 12u);
  EXPECT_NE(html.find(">s39<title>"), html.npos);
  EXPECT_NE(html.find(fmt::format("n; the pointer names {} more", 40 - positions.size())),
            html.npos);
  EXPECT_LE(positions.back(), 228.1);  // the plot's bottom
}

TEST(SvgPlot, DrawsGreyLinesBelowTheOthers) {
  const std::string html =
      figure_of(Plot{.id = "p", .series = {{"best", ramp(3), kBest}, {"other", ramp(3), kGrey}}});
  EXPECT_GT(html.find("class=\"series c0\""), html.find("class=\"series c7\""));
}

TEST(SvgPlot, ShowsASpreadThatDoesNotFlattenTheLine) {
  Series line{"s", ramp(4)};
  line.low = {-0.1, 0.9, NAN, 2.9};
  line.high = {0.1, 1e6, 2.1, 3.1};
  const std::string html = figure_of(Plot{.id = "p", .series = {line}});
  const std::string band = html.substr(html.find("class=\"band c0\""));
  EXPECT_EQ(count_of(band.substr(0, band.find("/>")), "M"), 2u);  // the gap
  EXPECT_EQ(band.find("nan"), band.npos);
  EXPECT_NE(html.find("data-yrange=\"-0.1,3.3,0\""), html.npos) << html;
  EXPECT_EQ(count_of(figure_of(Plot{.id = "p", .series = {{"s", ramp(4)}}}), "band"), 0u);
}

/// The d of the first path of this class.
std::string path_of(const std::string& html, const std::string& name) {
  const auto begin = html.find(" d=\"", html.find("<path class=\"" + name)) + 4;
  return html.substr(begin, html.find('"', begin) - begin);
}

TEST(SvgPlot, ShowsWholeBandsThatAreIntervals) {
  Series line{"s", ramp(3)};  // 0, 1, 2
  line.low = {-4, -3, 1};
  line.high = {4, 3, 5};
  Plot plot{.id = "p", .series = {line}};
  EXPECT_NE(figure_of(plot).str().find("data-yrange=\"-0.2,2.2,0\""), std::string::npos);
  plot.whole_bands = true;
  EXPECT_NE(figure_of(plot).str().find("data-yrange=\"-4,5,0\""), std::string::npos);
  plot.series.front().high.back() = 1000;
  EXPECT_NE(figure_of(plot).str().find("data-yrange=\"-4,22,0\""), std::string::npos);
  plot.series = {{.name = "flat", .curve = {{1}, {0.9}}, .low = {-7}, .high = {8}}};
  EXPECT_NE(figure_of(plot).str().find("data-yrange=\"-7,8,0\""), std::string::npos);
}

TEST(SvgPlot, LeavesABandOpenWhereItGoesOnBeyond) {
  Series line{"s", ramp(4)};
  line.low = {0, 1, 2, 3};
  line.high = {99, 99, 2.2, 3.2};
  Plot plot{.id = "p", .note = "n", .series = {line}};
  const std::string cut = figure_of(plot);
  EXPECT_EQ(path_of(cut, "edge"),
            "M56.0 228.0L192.7 163.8L329.3 99.5L466.0 35.3"  // below
            "M56.0 16.0M192.7 16.0L329.3 86.7L466.0 22.4");  // above
  EXPECT_NE(cut.find("<small>n; a band goes on beyond the plot</small>"), cut.npos) << cut;
  plot.series.front().high = {0.1, 1.1, 2.1, 3.1};
  const std::string whole = figure_of(plot);
  EXPECT_EQ(count_of(path_of(whole, "edge"), "M"), 2u);
  EXPECT_NE(whole.find("<small>n</small>"), whole.npos);
}

TEST(SvgPlot, SaysThatThereIsNothing) {
  for (const std::string& html :
       {figure_of(Plot{.id = "p"}).str(),
        figure_of(StackedBars{.id = "b", .labels = {"1"}, .parts = {{"p", 0, {0}}}}).str()}) {
    EXPECT_NE(html.find("nothing was recorded"), html.npos);
  }
}

/// Whether all numbers of the drawing's attributes are finite.
bool has_positions_only(const std::string& html) {
  for (const char* odd : {"nan", "inf", "\u2013\"", "&ndash;\""}) {
    if (html.find(odd) != html.npos) return false;
  }
  return true;
}

TEST(SvgPlot, HasAPositionForEveryNumberThatADoubleCanBe) {
  constexpr double kLeast = 5e-324, kMost = 1.7e308;
  const std::vector<double> odd{NAN,    INFINITY, -INFINITY, 0,     -1,    kLeast,
                                1e-300, 1,        1e300,     kMost, -kMost};
  for (const double a : odd) {
    for (const double b : odd) {
      Curve curve;
      curve.add(1, a);
      curve.add(2, b);
      curve.add(b, a);
      for (const bool log : {false, true}) {
        for (const bool round : {false, true}) {
          Plot plot{.id = "p", .series = {{"s", curve, 0, Look::dotted_line}}};
          plot.series.front().low = {a, a, b};
          plot.series.front().high = {b, b, a};
          plot.x.log = plot.y.log = log;
          plot.x.round = plot.y.round = round;
          EXPECT_TRUE(has_positions_only(figure_of(plot)))
              << a << " and " << b << ", " << log << round;
        }
      }
      EXPECT_TRUE(has_positions_only(figure_of(StackedBars{
          .id = "b", .labels = {"1", "2"}, .parts = {{"p", 0, {a, b}}, {"q", 1, {b, a}}}})))
          << a << " and " << b;
    }
  }
}

TEST(Markup, EscapesTextAndLeavesHtml) {
  const std::string name = "<img src=x onerror='a()'>&\"";
  EXPECT_EQ(markup("<b class=\"{}\">{}</b>", name, Html("<i>x</i>")).str(),
            "<b class=\"&lt;img src=x onerror=&#39;a()&#39;&gt;&amp;&quot;\"><i>x</i></b>");
  EXPECT_EQ(markup("{}", std::string_view("a<b")).str(), "a&lt;b");
  EXPECT_EQ(markup("{}", name.c_str()).str(), escaped(name).str());
}

TEST(Markup, HasADashForWhatIsNotFinite) {
  EXPECT_EQ(markup("{:.2f} {} {}", 0.5, 7, 2.5F).str(), "0.50 7 2.5");
  EXPECT_EQ(markup("{:.2f}|{:>8.3g}|{}", NAN, INFINITY, -INFINITY).str(),
            "&ndash;|&ndash;|&ndash;");
}

TEST(StackedBarsOf, AFigureLieOnEachOther) {
  const std::string html = figure_of(StackedBars{
      .id = "b", .labels = {"1", "2"}, .parts = {{"low", 0, {1, 2}}, {"high", 1, {3, 0}}}});
  EXPECT_EQ(count_of(html, "<rect"), 3u);  // a part of nothing is not drawn
  EXPECT_NE(html.find("<title>1, high: 3</title>"), html.npos);
  EXPECT_EQ(count_of(html, "<li>"), 2u);
}

TEST(StackedBarsOf, AFigureHaveNamesThatHaveRoom) {
  StackedBars bars{.id = "b", .parts = {{"p", 0, {}}}};
  for (int i = 0; i < 8; ++i) {
    bars.labels.push_back(fmt::format("resnet18-cifar10-lr0.{}-batch128", i));
    bars.parts.front().values.push_back(1);
  }
  const std::string html = figure_of(bars);
  EXPECT_NE(html.find(">lr0.7<title>resnet18-cifar10-lr0.7-batch128</title>"), html.npos) << html;
  bars.labels.assign(8, "123456");  // a step
  EXPECT_NE(figure_of(bars).str().find(">123456<title>"), std::string::npos);
}

TEST(Html, EscapesWhatWouldBeMarkupAndMendsWhatIsNoText) {
  EXPECT_EQ(escaped("a<b>&\"'").str(), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escaped("caf\xC3\xA9 \xFF\x01").str(), "caf\xC3\xA9 \\xff\\x01");
  EXPECT_EQ(escaped("\xE2\x82").str(), "\\xe2\\x82");  // breaks off
}

TEST(Html, FoldsWhatFewLookAt) {
  EXPECT_EQ(folded("a < b", "<p>c</p>").str(),
            "<details><summary>a &lt; b</summary>\n<p>c</p></details>\n");
}

TEST(Html, PutsBytesIntoAnAddress) {
  EXPECT_EQ(data_uri("t", "").str(), "data:t;base64,");
  EXPECT_EQ(data_uri("t", "M").str(), "data:t;base64,TQ==");
  EXPECT_EQ(data_uri("t", "Ma").str(), "data:t;base64,TWE=");
  EXPECT_EQ(data_uri("t", "Man").str(), "data:t;base64,TWFu");
  EXPECT_EQ(data_uri("t", "\xFB\xFF").str(), "data:t;base64,+/8=");
}

}  // namespace
}  // namespace ringlet::app::report
