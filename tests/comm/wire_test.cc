// What goes over the wire of the control plane: frames, addresses, the table of machines, and the
// clock that says when a silence is a death.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "comm/processes/frames.h"
#include "comm/processes/hello.h"
#include "comm/processes/message_socket.h"
#include "comm/processes/outbox.h"
#include "comm/processes/pulse.h"
#include "comm/processes/tcp_address.h"

namespace ringlet::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Kind = Message::Kind;

std::vector<Message> read_in_pieces(const std::string& bytes, std::size_t piece, Frames& frames) {
  std::vector<Message> messages;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    frames.add(std::string_view(bytes).substr(at, piece));
    while (auto message = frames.next()) messages.push_back(*message);
  }
  return messages;
}

TEST(Frames, AreMessagesHoweverTheStreamIsCut) {
  const std::string bytes = frame_of({.kind = Kind::set, .number = 7, .key = "k", .value = "vv"}) +
                            frame_of({.kind = Kind::beat}) +
                            frame_of({.kind = Kind::set, .value = std::string(50'000, 'x')});
  for (const std::size_t piece :
       {std::size_t{1}, std::size_t{3}, std::size_t{4096}, bytes.size()}) {
    Frames frames;
    const auto messages = read_in_pieces(bytes, piece, frames);
    ASSERT_EQ(messages.size(), 3U) << piece;
    EXPECT_EQ(messages[0].key, "k");
    EXPECT_EQ(messages[0].number, 7);
    EXPECT_EQ(messages[1].kind, Kind::beat);
    EXPECT_EQ(messages[2].value.size(), 50'000U);
    EXPECT_FALSE(frames.is_broken());
  }
}

TEST(Frames, EndWhereALengthIsNoMessages) {
  const std::string good = frame_of({.kind = Kind::beat});
  for (const std::uint32_t length : {0U, 11U, 70'000U, 0xffffffffU}) {
    Frames frames;
    std::string bad(sizeof length, '\0');
    std::memcpy(bad.data(), &length, sizeof length);
    EXPECT_EQ(read_in_pieces(good + bad + good, 5, frames).size(), 1U) << length;
    EXPECT_TRUE(frames.is_broken()) << length;
  }
  Frames of_stranger;
  of_stranger.set_longest(Frames::kLongestOfStranger);
  const std::string longer = frame_of({.value = std::string(Frames::kLongestOfStranger, 'x')});
  EXPECT_TRUE(read_in_pieces(longer, 1000, of_stranger).empty());
  EXPECT_TRUE(of_stranger.is_broken());
}

TEST(Frames, GoWholeThroughASocketThatIsFull) {
  auto [here, there] = MessageSocket::make_pair(MessageSocket::Wire::stream);
  Outbox outbox;
  for (int i = 0; i < 30; ++i) {
    outbox.push({.kind = Kind::set, .number = i, .value = std::string(50'000, 'x')});
  }
  outbox.send_to(here);
  ASSERT_FALSE(outbox.empty()) << "the socket took all";
  ASSERT_TRUE(here.in_message()) << "the socket took whole messages only";
  outbox.push({.kind = Kind::abort, .value = "why"});
  int before = 0;
  for (; before < 30; ++before) {
    const auto message = there.receive();
    outbox.send_to(here);
    ASSERT_TRUE(message) << "a message was cut";
    if (message->kind == Kind::abort) break;
    EXPECT_EQ(message->number, before);
  }
  EXPECT_LT(before, 29);
  EXPECT_TRUE(outbox.empty());
}

TEST(TcpAddress, IsHostAndPort) {
  EXPECT_EQ(parse_address("node7:29500"), (TcpAddress{"node7", 29500}));
  EXPECT_EQ(parse_address("[fe80::1]:1"), (TcpAddress{"fe80::1", 1}));
  EXPECT_EQ(text_of(TcpAddress{"fe80::1", 1}), "tcp:[fe80::1]:1");
  for (const char* bad : {"", "node7", ":29500", "node7:", "node7:0", "node7:65536", "node7:1x",
                          "fe80::1:29500", "node7:-1"}) {
    EXPECT_FALSE(parse_address(bad)) << bad;
  }
}

TEST(Pulse, DiesOfFourSilentBeatsAndForgivesItsOwnSleep) {
  using std::chrono::seconds;
  const auto begin = steady_clock::now();
  Pulse watched(seconds(2));
  for (int second = 0; second <= 8; ++second) watched.look(begin + seconds(second));
  EXPECT_FALSE(watched.is_dead());
  watched.look(begin + seconds(9));
  EXPECT_TRUE(watched.is_dead());

  Pulse slept(seconds(2));
  slept.look(begin + seconds(1));
  slept.look(begin + seconds(60));
  EXPECT_FALSE(slept.is_dead());
  for (int second = 61; second < 69; ++second) slept.look(begin + seconds(second));
  EXPECT_TRUE(slept.is_dead());
}

TEST(Site, TableComesBack) {
  const std::vector<Site> sites{{0, 12, "a", "10.0.0.1"}, {1, 13, "b", ""}, {0, 0, "", "x"}};
  const std::vector<Site> again = sites_of(table_of(sites));
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[1].machine, 1);
  EXPECT_EQ(again[1].host, "b");
  EXPECT_EQ(again[0].pid, 12);
  EXPECT_EQ(again[2].address, "x");
}

}  // namespace
}  // namespace ringlet::comm
