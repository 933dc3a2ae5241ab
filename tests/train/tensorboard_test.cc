// Event files, byte by byte: checksums against published vectors, records against the format.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/files/atomic_file.h"
#include "tests/support/files.h"
#include "train/telemetry/tensorboard/crc32c.h"
#include "train/telemetry/tensorboard/event.pb.h"
#include "train/telemetry/tensorboard/event_writer.h"

namespace ringlet::train::tensorboard {
namespace {

TEST(Crc32c, AgreesWithTheVectorsOfRfc3720) {
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) {
    rising += static_cast<char>(i);
    falling += static_cast<char>(31 - i);
  }
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(crc32c(falling), 0x113FDB5Cu);
}

TEST(Crc32c, IsMaskedAsTheFormatSays) {
  const std::uint32_t crc = 0xE3069283u;
  EXPECT_EQ(masked_crc32c("123456789"), ((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
}

/// The only file in a folder.
std::filesystem::path only_file(const std::filesystem::path& folder) {
  return std::filesystem::directory_iterator(folder)->path();
}

template <class Number>
Number number_at(const std::string& bytes, std::size_t at) {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

/// The events of a file whose checksums are right.
std::vector<Event> events_in(const std::string& bytes) {
  constexpr std::size_t kLength = 8, kCrc = 4;
  std::vector<Event> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = static_cast<std::size_t>(number_at<std::uint64_t>(bytes, at));
    EXPECT_EQ(number_at<std::uint32_t>(bytes, at + kLength),
              masked_crc32c(bytes.substr(at, kLength)));
    const std::string event = bytes.substr(at + kLength + kCrc, length);
    at += kLength + kCrc + length;
    EXPECT_EQ(number_at<std::uint32_t>(bytes, at), masked_crc32c(event));
    at += kCrc;
    EXPECT_TRUE(events.emplace_back().ParseFromString(event));
  }
  return events;
}

std::vector<std::string> tags_of(const Event& event) {
  std::vector<std::string> tags;
  for (const Value& value : event.summary().value()) tags.push_back(value.tag());
  return tags;
}

TEST(EventWriter, BeginsWithTheVersionAndWhereTheRunGoesOn) {
  const testing::TemporaryDirectory folder;
  { EventWriter writer(folder / "events", 7); }
  const auto file = only_file(folder / "events");
  EXPECT_TRUE(file.filename().string().starts_with("events.out.tfevents."));
  const auto events = events_in(testing::read_file(file));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_GT(events[0].wall_time(), 1.7e9);
  EXPECT_EQ(events[1].session().status(), Session::START);
  EXPECT_EQ(events[1].step(), 8);
}

TEST(EventWriter, FilesAreNamedInTheOrderInWhichTheyBegan) {
  const testing::TemporaryDirectory folder;
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) {
    const auto file = folder / std::to_string(i);
    { EventWriter writer(file, 0); }
    names.push_back(only_file(file).filename().string());
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end())) << ::testing::PrintToString(names);
}

TEST(EventWriter, HasAnEventAStepAndAnEpochAndLeavesOutWhatIsNoNumber) {
  const testing::TemporaryDirectory folder;
  EventWriter writer(folder.path(), 0);
  train::StepReport step{
      .epoch = 1, .step = 1, .loss = 0.5, .lr = 0.25, .samples = 8, .seconds = 2};
  writer.step_done(step);
  step.grad_norm = 3;
  step.loss_scale = 1024;
  step.skipped = true;
  writer.step_done(step);
  const auto file = only_file(folder.path());
  EXPECT_EQ(events_in(testing::read_file(file)).size(), 2u);  // not yet
  train::EpochReport epoch;
  epoch.step = 4;
  writer.epoch_done(epoch);
  const auto events = events_in(testing::read_file(file));
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(tags_of(events[2]), (std::vector<std::string>{"train/loss", "train/learning_rate",
                                                          "train/samples_per_second"}));
  EXPECT_EQ(events[2].step(), 1);
  EXPECT_EQ(events[2].summary().value(0).simple_value(), 0.5F);
  EXPECT_EQ(events[2].summary().value(2).simple_value(), 4.0F);
  EXPECT_EQ(
      tags_of(events[3]),
      (std::vector<std::string>{"train/loss", "train/learning_rate", "train/grad_norm",
                                "train/samples_per_second", "train/loss_scale", "train/skipped"}));
  EXPECT_EQ(events[3].summary().value(4).simple_value(), 1024.0F);
  EXPECT_EQ(events[3].summary().value(5).simple_value(), 1.0F);
  EXPECT_EQ(events[4].step(), 4);
  EXPECT_EQ(tags_of(events[4]).size(), 5u);
  EXPECT_TRUE(events[4].summary().value(4).has_simple_value());  // a share of 0 is one
  epoch.told = {{"target angle", 61.25, "degrees"}};
  writer.epoch_done(epoch);
  const auto more = events_in(testing::read_file(file));
  ASSERT_EQ(more.size(), 6u);
  ASSERT_EQ(tags_of(more[5]).size(), 6u);
  EXPECT_EQ(tags_of(more[5])[1], "epoch/train_target_angle");
  EXPECT_EQ(more[5].summary().value(1).simple_value(), 61.25F);
}

TEST(EventWriter, TwoInOneFolderHaveFilesOfTheirOwn) {
  const testing::TemporaryDirectory folder;
  const EventFile one(folder.path(), 1), other(folder.path(), 1);
  EXPECT_NE(one.path(), other.path());
}

TEST(EventWriter, AFolderThatCannotBeMadeIsNamed) {
  const testing::TemporaryDirectory folder;
  EXPECT_TRUE(
      testing::says(testing::message_of<FileError>([&] { EventFile file("/proc/self/events", 1); }),
                    {"/proc/self/events"}));
}

}  // namespace
}  // namespace ringlet::train::tensorboard
