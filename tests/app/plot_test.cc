// Plots: marks of axes, places of numbers, what becomes of thousands of points, and what is drawn.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/report/axis.h"
#include "app/report/curve.h"
#include "app/report/html.h"
#include "app/report/stacked_bars.h"
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
  EXPECT_EQ(labels_of(Axis({.whole = true}, 1, 10, 0, 100, 4)), (Words{"3", "6", "9"}));
}

TEST(ShortNumber, IsShort) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(-1500), "-1500");
  EXPECT_EQ(short_number(15000), "15k");
  EXPECT_EQ(short_number(2.5e6), "2.5M");
  EXPECT_EQ(short_number(3e9), "3G");
  EXPECT_EQ(short_number(1e-5), "1e-5");
  EXPECT_EQ(percent(0.915), "91.5 %");
}

TEST(LinearAxis, MarksRoundNumbers) {
  EXPECT_EQ(labels_of(Axis({}, 1, 10, 0, 100, 6)), (Words{"2", "4", "6", "8", "10"}));
  EXPECT_EQ(labels_of(Axis({.round = true}, 0.13, 0.61, 0, 100, 5)),
            (Words{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7"}));
  EXPECT_EQ(labels_of(Axis({.round = true, .include_low = 0}, 0.3, 1.9, 0, 100, 5)),
            (Words{"0", "0.5", "1", "1.5", "2"}));
  EXPECT_EQ(labels_of(Axis({.percent = true}, 0.8, 0.9, 0, 100, 2)),
            (Words{"80 %", "85 %", "90 %"}));
}

TEST(LinearAxis, GivesPlacesBetweenItsEnds) {
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
            (Words{"1", "10", "100"}));
}

TEST(LogAxis, MarksPowersOfTwoWhereThoseAreCounted) {
  const AxisSpec binary{.log = true, .binary = true};
  EXPECT_EQ(labels_of(Axis(binary, 1, 8, 0, 300, 6)), (Words{"1", "2", "4", "8"}));
  EXPECT_EQ(labels_of(Axis(binary, 4, 1024, 0, 300, 4)), (Words{"4", "16", "64", "256", "1024"}));
  EXPECT_EQ(Axis(binary, 4, 1024, 0, 300, 4).marks().size(), 9u);
  EXPECT_EQ(labels_of(Axis(binary, 3, 9, 0, 300, 6)), (Words{"4", "8"}));
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

TEST(SvgPlot, HasALegendForMoreThanOneSeries) {
  const Series line{"one", ramp(3)};
  EXPECT_EQ(figure_of(Plot{.id = "p", .series = {line}}).find("legend"), std::string::npos);
  const std::string two = figure_of(Plot{
      .id = "p", .series = {line, {"faint one", ramp(3), 0, Look::faint}, {"two", ramp(3), 1}}});
  EXPECT_EQ(count_of(two, "<li>"), 2u);
  EXPECT_EQ(two.find("faint one"), two.npos);
}

TEST(SvgPlot, SaysThatThereIsNothing) {
  EXPECT_NE(figure_of(Plot{.id = "p"}).find("nothing was recorded"), std::string::npos);
  EXPECT_NE(figure_of(StackedBars{.id = "b", .labels = {"1"}, .parts = {{"p", 0, {0}}}})
                .find("nothing was recorded"),
            std::string::npos);
}

TEST(StackedBarsOf, AFigureLieOnEachOther) {
  const std::string html = figure_of(StackedBars{
      .id = "b", .labels = {"1", "2"}, .parts = {{"low", 0, {1, 2}}, {"high", 1, {3, 0}}}});
  EXPECT_EQ(count_of(html, "<rect"), 3u);  // a part of nothing is not drawn
  EXPECT_NE(html.find("<title>1, high: 3</title>"), html.npos);
  EXPECT_EQ(count_of(html, "<li>"), 2u);
}

TEST(Html, EscapesWhatWouldBeMarkupAndMendsWhatIsNoText) {
  EXPECT_EQ(escaped("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escaped("caf\xC3\xA9 \xFF\x01"), "caf\xC3\xA9 \\xff\\x01");
  EXPECT_EQ(escaped("\xE2\x82"), "\\xe2\\x82");  // breaks off
}

TEST(Html, PutsBytesIntoAnAddress) {
  EXPECT_EQ(data_uri("t", ""), "data:t;base64,");
  EXPECT_EQ(data_uri("t", "M"), "data:t;base64,TQ==");
  EXPECT_EQ(data_uri("t", "Ma"), "data:t;base64,TWE=");
  EXPECT_EQ(data_uri("t", "Man"), "data:t;base64,TWFu");
  EXPECT_EQ(data_uri("t", "\xFB\xFF"), "data:t;base64,+/8=");
}

}  // namespace
}  // namespace ringlet::app::report
