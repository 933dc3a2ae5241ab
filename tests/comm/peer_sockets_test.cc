// The connections for data: each process has one with each other one, whoever else connects.
#include "comm/processes/peer_sockets.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/processes/secret.h"
#include "tests/comm/processes.h"

namespace ringlet::comm {
namespace {

using std::chrono::milliseconds;

/// Processes that have met.
std::vector<std::unique_ptr<Rendezvous>> met(int processes) {
  const std::string run = new_run();
  std::vector<std::unique_ptr<Rendezvous>> all(static_cast<std::size_t>(processes));
  run_ranks(processes, [&](int process) {
    RendezvousOptions options;
    options.timeout_seconds = 20;
    all[static_cast<std::size_t>(process)] =
        std::make_unique<Rendezvous>(ProcessPosition{process, processes, run, "test"}, options);
  });
  return all;
}

/// A connection to where a process listens for data, once it does.
MessageSocket connect_to(Rendezvous& anybody, int process) {
  const std::string where = anybody.get(fmt::format("data of process {}", process), 20);
  const std::string port = where.substr(0, where.find(' '));
  std::string failure;
  return MessageSocket::connect(TcpAddress{"127.0.0.1", *parse_port(port)}, milliseconds(5000),
                                failure);
}

void send_bytes(int descriptor, const std::string& bytes) {
  ASSERT_EQ(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
}

std::string receive_bytes(int descriptor, std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t got = 0; got < count;) {
    pollfd waiting{descriptor, POLLIN, 0};
    ::poll(&waiting, 1, 20'000);
    const ssize_t more = ::recv(descriptor, bytes.data() + got, count - got, MSG_DONTWAIT);
    if (more <= 0) return bytes.substr(0, got);
    got += static_cast<std::size_t>(more);
  }
  return bytes;
}

/// As the greeting of process `from` for process `to` begins.
std::string numbers(std::int32_t from, std::int32_t to) {
  std::string bytes(sizeof from + sizeof to, '\0');
  std::memcpy(bytes.data(), &from, sizeof from);
  std::memcpy(bytes.data() + sizeof from, &to, sizeof to);
  return bytes;
}

/// Each pair has one connection: what one end is sent comes out at the other.
void expect_mesh(const std::vector<std::vector<Descriptor>>& sockets) {
  for (std::size_t from = 0; from < sockets.size(); ++from) {
    EXPECT_FALSE(sockets[from][from].open());
    for (std::size_t to = 0; to < sockets.size(); ++to) {
      if (from == to) continue;
      const std::string words = fmt::format("{} to {}", from, to);
      send_bytes(sockets[from][to].get(), words);
      EXPECT_EQ(receive_bytes(sockets[to][from].get(), words.size()), words);
    }
  }
}

TEST(PeerSockets, AreThereWhateverStrangersDo) {
  const auto all = met(3);
  std::vector<std::vector<Descriptor>> sockets(3);
  std::atomic<bool> strangers_came{false};
  std::vector<MessageSocket> strangers;
  std::thread hostile([&] {
    for (const std::string& bytes :
         {std::string(), std::string("GET / HTTP/1.1\r\n\r\n"), std::string(4000, 'x'),
          numbers(1, 0) + std::string(kProofBytes, 'x'), numbers(2, 0), numbers(77, 0),
          numbers(-1, -1) + std::string(kProofBytes, '\0')}) {
      strangers.push_back(connect_to(*all[0], 0));
      send_bytes(strangers.back().descriptor(), bytes);
    }
    for (int i = 0; i < 100; ++i) strangers.push_back(connect_to(*all[0], 0));
    strangers_came = true;
  });
  run_ranks(3, [&](int process) {
    while (process > 0 && !strangers_came) std::this_thread::sleep_for(milliseconds(1));
    auto& mine = sockets[static_cast<std::size_t>(process)];
    mine = connect_peers(*all[static_cast<std::size_t>(process)], "127.0.0.1", 20);
  });
  hostile.join();
  expect_mesh(sockets);
  EXPECT_FALSE(connect_to(*all[1], 0).open()) << "nobody listens any more";
}

TEST(PeerSockets, KeepWhatComesBehindTheProof) {
  const auto all = met(2);
  std::vector<std::vector<Descriptor>> sockets(2);
  run_ranks(2, [&](int process) {
    auto& mine = sockets[static_cast<std::size_t>(process)];
    mine = connect_peers(*all[static_cast<std::size_t>(process)], "127.0.0.1", 20);
    if (process == 1) send_bytes(mine[0].get(), "at once");
  });
  EXPECT_EQ(receive_bytes(sockets[0][1].get(), 7), "at once");
}

TEST(PeerSockets, NameWhoDidNotComeAndEndWithTheRun) {
  const auto all = met(3);
  const auto late = messages_of_ranks(1, [&](int) { connect_peers(*all[0], "127.0.0.1", 0.3); });
  EXPECT_EQ(late[0], "nothing came from processes 1 and 2 in 0.3 s");
  const auto given_up = messages_of_ranks(2, [&](int i) {
    if (i == 0) connect_peers(*all[0], "127.0.0.1", 600);
    if (i == 1) all[2]->abort({2, "out of paper"});
  });
  EXPECT_EQ(given_up[0], "stopped, because rank 2 failed: out of paper");
}

TEST(Secrets, AreProvedByHmacWithSha256) {
  EXPECT_EQ(hexadecimal(proof("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");  // RFC 4231, 2
  EXPECT_EQ(hexadecimal(proof(std::string(131, '\xaa'),
                              "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");  // 6
  EXPECT_EQ(proof("", "").size(), kProofBytes);
  EXPECT_NE(new_secret(), new_secret());
  EXPECT_TRUE(is_same("abc", "abc"));
  for (const char* other : {"abd", "ab", "abcd", ""}) EXPECT_FALSE(is_same("abc", other)) << other;
}

}  // namespace
}  // namespace ringlet::comm
