// What `ringlet inspect` finds: numbers of tensors, of pictures, of traces, of curves; and that
// files are known by content.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/inspect/format.h"
#include "app/inspect/parts.h"
#include "app/inspect/statistics.h"
#include "base/data_error.h"
#include "base/files/atomic_file.h"
#include "base/files/json_text.h"
#include "tests/data/idx_files.h"
#include "tests/support/files.h"
#include "train/files/safetensors.h"
#include "train/files/state_json.h"

namespace ringlet::app::inspect {
namespace {

using testing::message_of;
using testing::says;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(InspectText, HasADashForNoNumber) {
  const Document document{"f", "trace", {{"a", -kNaN}, {"b", {-kNaN, Form::share}}}, {}};
  EXPECT_EQ(to_text(document), "f: trace\n  a  -\n  b  -\n");
  EXPECT_TRUE(to_json(document)["a"].is_null());
}

template <class T>
double decoded(const char* dtype, T bits) {
  std::byte bytes[sizeof bits];
  std::memcpy(bytes, &bits, sizeof bits);
  double number = 0;
  EXPECT_TRUE(decode(dtype, bytes, {&number, 1})) << dtype;
  return number;
}

TEST(Decode, KnowsEveryDtypeOfTheFormat) {
  using std::uint16_t, std::uint8_t;
  EXPECT_EQ(decoded("F32", 1.5F), 1.5);
  EXPECT_EQ(decoded("F64", -1e300), -1e300);
  EXPECT_EQ(decoded("I64", std::int64_t{-5}), -5);
  EXPECT_EQ(decoded("U64", ~std::uint64_t{0}), 0x1p64);
  EXPECT_EQ(decoded("I32", -7), -7);
  EXPECT_EQ(decoded("U32", 0xFFFFFFFFU), 4294967295.0);
  EXPECT_EQ(decoded("I16", std::int16_t{-2}), -2);
  EXPECT_EQ(decoded("U16", uint16_t{65535}), 65535);
  EXPECT_EQ(decoded("I8", std::int8_t{-128}), -128);
  EXPECT_EQ(decoded("U8", uint8_t{200}), 200);
  EXPECT_EQ(decoded("BOOL", uint8_t{1}), 1);
  EXPECT_EQ(decoded("F16", uint16_t{0x3C00}), 1);
  EXPECT_EQ(decoded("F16", uint16_t{0xC500}), -5);
  EXPECT_EQ(decoded("F16", uint16_t{0x7BFF}), 65504);
  EXPECT_EQ(decoded("F16", uint16_t{0x0001}), 0x1p-24);
  EXPECT_EQ(decoded("F16", uint16_t{0xFC00}), -HUGE_VAL);
  EXPECT_TRUE(std::isnan(decoded("F16", uint16_t{0x7E00})));
  EXPECT_EQ(decoded("F8_E5M2", uint8_t{0x7B}), 57344);
  EXPECT_EQ(decoded("F8_E5M2", uint8_t{0x7C}), HUGE_VAL);
  EXPECT_EQ(decoded("F8_E4M3", uint8_t{0x7E}), 448);  // no infinity: the top exponent has numbers
  EXPECT_TRUE(std::isnan(decoded("F8_E4M3", uint8_t{0xFF})));
  EXPECT_EQ(decoded("F8_E4M3", uint8_t{0x01}), 0x1p-9);
  for (const float x :
       {1.0F, -3.140625F, 1e-40F, 3.3895314e38F}) {  // BF16 is the upper half of F32
    const auto upper = static_cast<uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
    const float rounded = std::bit_cast<float>(std::uint32_t{upper} << 16);
    EXPECT_EQ(decoded("BF16", upper), rounded);
  }
  double number = 0;
  EXPECT_FALSE(decode("F4", {}, {&number, 1}));
}

TEST(Statistics, AreThoseOfAllPiecesTogether) {
  std::vector<double> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 1e9);  // a mean that would eat up the digits
  Statistics at_once, in_pieces;
  at_once.add(numbers);
  for (std::size_t at = 0; at < numbers.size(); at += 7) {
    in_pieces.add(std::span(numbers).subspan(at, std::min<std::size_t>(7, numbers.size() - at)));
  }
  const double deviation = std::sqrt((1000.0 * 1000.0 - 1) / 12);
  for (const Statistics& s : {at_once, in_pieces}) {
    EXPECT_EQ(s.count(), 1000);
    EXPECT_EQ(s.minimum(), 1e9);
    EXPECT_EQ(s.maximum(), 1e9 + 999);
    EXPECT_NEAR(s.mean(), 1e9 + 499.5, 1e-6);
    EXPECT_NEAR(s.deviation(), deviation, 1e-6);
  }
}

TEST(Statistics, LeaveOutWhatIsNoNumber) {
  Statistics s;
  s.add(std::vector<double>{kNaN, 0, kInfinity, -2, -kInfinity, 0});
  EXPECT_EQ(s.count(), 6);
  EXPECT_EQ(s.nans(), 1);
  EXPECT_EQ(s.infinities(), 2);
  EXPECT_EQ(s.zeros(), 2);
  EXPECT_EQ(s.minimum(), -2);
  EXPECT_EQ(s.maximum(), 0);
  EXPECT_DOUBLE_EQ(s.mean(), -2.0 / 3);
  EXPECT_TRUE(std::isnan(Statistics().mean()));
}

class Inspect : public ::testing::Test {
 protected:
  nlohmann::json found(const std::string& name, const Wishes& wishes = {}) {
    return parse_json(to_json(inspect(folder_ / name, wishes)).dump());
  }
  std::string error(const std::string& name, const std::string& bytes) {
    testing::write_file(folder_ / name, bytes);
    return message_of<FileError>([&] { inspect(folder_ / name, {}); });
  }
  void write_state(const std::vector<float>& weights) {
    const std::filesystem::path state = folder_ / "state";
    std::filesystem::create_directories(state);
    const train::TensorSpec spec{"fc.bias", "F32", {static_cast<std::int64_t>(weights.size())}};
    train::write_safetensors(state / "model.safetensors",
                             std::vector<train::TensorToWrite>{{spec, weights.data()}});
    train::write_safetensors(state / "optimizer.safetensors",
                             std::vector<train::TensorToWrite>{{spec, weights.data()}});
    testing::write_file(
        state / "state.json",
        train::format_state_json({{}, {.step = 7, .epoch_loss = 3, .epoch_samples = 2}, 5}));
  }

  testing::TemporaryDirectory folder_;
};

TEST_F(Inspect, CountsWhatIsInEachTensor) {
  const std::vector<float> numbers{1, 0, -3, kNaN, kInfinity, 2};
  train::write_safetensors(
      folder_ / "odd name.txt",
      std::vector<train::TensorToWrite>{{{"w", "F32", {2, 3}}, numbers.data()},
                                        {{"empty", "F32", {0}}, numbers.data()}},
      {{"format", "pt"}, {"ringlet.task", "prices"}});
  const auto json = found("odd name.txt");
  EXPECT_EQ(json["format"], "safetensors");
  EXPECT_EQ(json["elements"], 6);
  EXPECT_EQ(json["metadata"][0]["value"], "pt");
  EXPECT_EQ(json["metadata"][1]["key"], "ringlet.task");
  EXPECT_EQ(json["metadata"][1]["value"], "prices");
  const auto& empty = json["tensors"][0];
  const auto& w = json["tensors"][1];
  EXPECT_EQ(w["name"], "w");
  EXPECT_EQ(w["shape"], (std::vector<int>{2, 3}));
  EXPECT_EQ(w["min"], -3);
  EXPECT_EQ(w["max"], 2);
  EXPECT_EQ(w["mean"], 0);
  EXPECT_EQ(w["zeros"], 1);
  EXPECT_EQ(w["NaN"], 1);
  EXPECT_EQ(w["Inf"], 1);
  EXPECT_TRUE(empty["mean"].is_null());
  EXPECT_EQ(json["warnings"].size(), 1u);
}

TEST_F(Inspect, CountsImagesAndLabels) {
  testing::write_file(folder_ / "a", testing::gzip(testing::idx({2, 2, 3}, 4)));
  const auto images = found("a");
  EXPECT_EQ(images["holds"], "2 images of 2 x 3");
  EXPECT_EQ(images["gzip"], true);
  EXPECT_EQ(images["raw"], 28);
  EXPECT_EQ(images["max"], 3);
  EXPECT_DOUBLE_EQ(images["mean_of_pixel/255"].get<double>(), 1.5 / 255);
  EXPECT_DOUBLE_EQ(images["deviation_of_pixel/255"].get<double>(), std::sqrt(1.25) / 255);
  testing::write_file(folder_ / "b", testing::idx({7}, 3));
  const auto labels = found("b");
  EXPECT_EQ(labels["holds"], "7 labels");
  ASSERT_EQ(labels["classes"].size(), 3u);
  EXPECT_EQ(labels["classes"][0]["samples"], 3);
  EXPECT_EQ(labels["classes"][2]["samples"], 2);
}

TEST_F(Inspect, DrawsImages) {
  std::string image = testing::idx_header(8, {1, 4, 3});
  image += std::string("\xff\x00\x00\xff\x00\x00\x00\x00\xff\x00\x00\xff", 12);
  testing::write_file(folder_ / "a", image);
  const Document document = inspect(folder_ / "a", {.pictures = 5});
  ASSERT_EQ(document.pictures.size(), 1u);
  EXPECT_EQ(document.pictures[0], "  @\n    @\n");
  EXPECT_EQ(draw(std::vector<std::uint8_t>(400 * 300, 255), 300, 400).find('\n'), 96u);
}

TEST_F(Inspect, SaysWhetherAStateCanBeResumed) {
  write_state({1, 2});
  for (const char* name : {"", "state", "state/state.json"}) {
    const auto json = found(name);
    EXPECT_EQ(json["steps_done"], 7) << name;
    EXPECT_EQ(json["their_loss"], 1.5) << name;
    EXPECT_EQ(json["data_hash"], "0000000000000005") << name;
    EXPECT_EQ(json["can_be_resumed"], true) << name;
    EXPECT_EQ(json["broken_numbers"], 0) << name;
  }
  write_state({1, kNaN});
  EXPECT_EQ(found("")["broken_numbers"], 2);
  const std::string whole = testing::read_file(folder_ / "state/model.safetensors");
  testing::write_file(folder_ / "state/model.safetensors", whole.substr(0, whole.size() - 1));
  const auto cut = found("");
  EXPECT_EQ(cut["can_be_resumed"], false);
  EXPECT_TRUE(says(cut["warnings"].at(0).get<std::string>(), {"model.safetensors: truncated"}));
}

TEST_F(Inspect, SaysWhetherAnEpochIsYetToBeTested) {
  write_state({1, 2});
  EXPECT_EQ(found("")["epoch_waits_for_its_test"], false);
  train::StateJson state{{}, {.step = 7, .epoch_loss = 3, .epoch_samples = 2}, 5};
  state.progress.untested = train::EndedEpoch{};
  testing::write_file(folder_ / "state/state.json", train::format_state_json(state));
  for (const char* name : {"", "state", "state/state.json"}) {
    EXPECT_EQ(found(name)["epoch_waits_for_its_test"], true) << name;
  }
}

TEST_F(Inspect, TellsTheBestVerification) {
  write_state({1, 2});
  EXPECT_FALSE(found("").contains("best_on_pairs"));
  EXPECT_FALSE(found("").contains("step_waits_for_its_verification"));
  train::StateJson state{{}, {.step = 7}, 5};
  state.progress.best = {{"lfw", 0.75, 4}, {"cfp", 0.5, 7}};
  testing::write_file(folder_ / "state/state.json", train::format_state_json(state));
  const auto json = found("state");
  EXPECT_EQ(json["step_waits_for_its_verification"], false);
  EXPECT_EQ(json["best_on_pairs"][0]["set"], "lfw");
  EXPECT_EQ(json["best_on_pairs"][0]["accuracy"], 0.75);
  EXPECT_EQ(json["best_on_pairs"][1]["step"], 7);
}

TEST_F(Inspect, AddsUpATrace) {
  testing::write_file(folder_ / "t", R"({"traceEvents":[
{"name":"fwd","cat":"kernel","ph":"X","ts":0,"dur":60,"pid":0,"tid":1},
{"name":"ring","cat":"collective","ph":"X","ts":60,"dur":40,"pid":0,"tid":2,"args":{"bytes":8}},
{"name":"fwd","cat":"kernel","ph":"X","ts":50,"dur":20,"pid":1,"tid":1}]})");
  const auto json = found("t");
  EXPECT_EQ(json["spans"], 3);
  EXPECT_EQ(json["rank_count"], 2);
  EXPECT_DOUBLE_EQ(json["in_collectives"].get<double>(), 40.0 / 120);
  EXPECT_DOUBLE_EQ(json["ranks"][0]["in_collectives"].get<double>(), 0.4);
  EXPECT_EQ(json["names"][0]["name"], "fwd");
  EXPECT_EQ(json["names"][0]["time"], 80);
  EXPECT_EQ(json["longest"][0]["takes"], 60);
}

TEST_F(Inspect, FollowsACurve) {
  const auto step = [](int number, const char* loss) {
    return R"({"kind":"step","epoch":1,"step":)" + std::to_string(number) + R"(,"loss":)" + loss +
           R"(,"lr":1,"samples":1})" + "\n";
  };
  testing::write_file(folder_ / "m",
                      step(1, "4") + step(2, "1") + step(5, "null") + step(6, "2") +
                          R"({"kind":"epoch","epoch":1,"test_accuracy":0.5})" + "\n" +
                          R"({"kind":"epoch","epoch":2,"test_accuracy":null})" + "\n" +
                          R"({"kind":"epoch","epoch":3,"test_accuracy":0.25})" + "\n{");
  const auto json = found("m");
  EXPECT_EQ(json["steps"], 4);
  EXPECT_EQ(json["first_loss"], 4);
  EXPECT_EQ(json["last_loss"], 2);
  EXPECT_EQ(json["least_loss"], 1);
  EXPECT_EQ(json["least_loss_at_step"], 2);
  EXPECT_EQ(json["missing_steps"], 2);
  EXPECT_EQ(json["NaN_losses"], 1);
  EXPECT_EQ(json["best_accuracy_in_epoch"], 1);
  EXPECT_EQ(json["warnings"].size(), 3u);
}

TEST_F(Inspect, SaysWhatItDoesNotKnow) {
  EXPECT_TRUE(says(error("a.safetensors", "\x89PNG\r\n\x1a\n"),
                   {"nothing that 'ringlet inspect' shows", "89 50"}));
  EXPECT_TRUE(says(error("a.safetensors", "\x80\x02pickled"),
                   {"nothing that 'ringlet inspect' shows", "it is a pickle"}));
  EXPECT_TRUE(says(error("a", ""), {"it is empty"}));
  EXPECT_TRUE(says(error("a", "{\"processor\": \"P\", \"ranges\": []}"),
                   {"'ringlet tune' keeps; 'ringlet simulate --from' reads it"}));
  EXPECT_TRUE(
      says(error("a", "{\"build\": {}, \"counting_rows\": 3}"), {"'ringlet compare' reads"}));
  EXPECT_TRUE(says(error("a", "engine,ranks_as,transport"), {"'ringlet bench' writes by --csv"}));
  EXPECT_TRUE(says(error("a", testing::gzip("abc")), {"unpacked", "61 62 63"}));
  std::filesystem::remove(folder_ / "a");
  std::filesystem::remove(folder_ / "a.safetensors");
  EXPECT_TRUE(
      says(message_of<FileError>([&] { inspect(folder_.path(), {}); }), {"nothing of a run"}));
  EXPECT_TRUE(says(message_of<DataError>([&] { inspect("/no/such", {}); }), {"no such file"}));
}

}  // namespace
}  // namespace ringlet::app::inspect
