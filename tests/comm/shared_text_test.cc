// A text that one process has comes to all, whatever its length, and never with other bytes.
#include "comm/shared_text.h"

#include <gtest/gtest.h>

#include <string>

#include "comm/transport/local/local_transport.h"
#include "tests/comm/processes.h"
#include "tests/support/files.h"

namespace ringlet::comm {
namespace {

std::string text_of_length(std::int64_t length) {
  std::string text;
  for (std::int64_t i = 0; i < length; ++i) text += static_cast<char>(i * i % 251);
  return text;
}

TEST(SharedText, ComesToAllProcesses) {
  constexpr int kProcesses = 3, kHas = 1;
  Processes world({.processes = kProcesses, .replicas = 1});
  for (const std::int64_t length : {0, 1, 29'999, 30'000, 30'001, 200'000}) {
    const std::string text = text_of_length(length), key = "text of " + std::to_string(length);
    run_ranks(kProcesses, [&](int process) {
      const auto mine = process == kHas ? std::optional(text) : std::nullopt;
      EXPECT_EQ(share_text(world.group(process), key, mine, 20), text) << process;
    });
  }
}

TEST(SharedText, OfOneProcessIsItsOwn) {
  LocalGroup group(2);
  EXPECT_EQ(share_text(group, "key", text_of_length(70'000), 1), text_of_length(70'000));
}

/// A group that changes what goes over it, or says that it is longer.
class Wire : public Group {
 public:
  using Change = std::function<std::string(std::string)>;
  explicit Wire(Change change) : Group(0, 1, 1), change_(std::move(change)) {}
  int channels() const override { return 1; }
  Transport& channel(int /*rank*/, int /*number*/) override {
    throw ContractError("it has no ranks");
  }
  void open_channels(int /*count*/) override {}
  bool abort(int /*rank*/, const std::string& /*message*/) noexcept override { return false; }
  std::shared_ptr<void> share(const std::string& /*key*/, std::int64_t /*bytes*/,
                              double /*timeout_seconds*/) override {
    return nullptr;
  }
  std::string agree(const std::string& /*key*/, const std::optional<std::string>& mine,
                    double /*timeout_seconds*/) override {
    return change_(*mine);
  }

 private:
  Change change_;
};

std::string message_over(Wire::Change change, const std::string& text) {
  Wire wire(std::move(change));
  return testing::message_of<CommError>([&] { share_text(wire, "model's file", text, 1); });
}

TEST(SharedText, IsRefusedWhereTheWireChangedIt) {
  const std::string text = text_of_length(500);
  const auto flip = [&text](std::string piece) {
    if (piece.size() == text.size()) piece[77] ^= 1;
    return piece;
  };
  const auto lose = [&text](const std::string& piece) {
    return piece.size() == text.size() ? std::string() : piece;
  };
  for (const Wire::Change& change : {Wire::Change(flip), Wire::Change(lose)}) {
    EXPECT_TRUE(testing::says(message_over(change, text),
                              {"the model's file has come with other bytes", "network"}));
  }
}

TEST(SharedText, HasABound) {
  const auto boast = [](const std::string&) { return "999999999999 0"; };
  EXPECT_TRUE(testing::says(message_over(boast, "x"),
                            {"the model's file has 999999999999 bytes", "at most 16777216"}));
}

}  // namespace
}  // namespace ringlet::comm
