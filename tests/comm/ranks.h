// Threads that act as ranks: each with its own device, streams, and end of a LocalGroup.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/all_reduce/strategies.h"
#include "comm/transport/local/local_transport.h"
#include "kernels/device.h"
#include "kernels/tensor.h"

namespace ringlet::comm {

/// Runs body(rank) for every rank, on a thread each, and returns what each threw ("" for nothing,
/// otherwise what(); secondary errors begin with "stopped").
template <class Body>
std::vector<std::string> messages_of_ranks(int size, Body body) {
  std::vector<std::string> messages(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&body, rank, &message = messages[static_cast<std::size_t>(rank)]] {
      try {
        body(rank);
      } catch (const std::exception& error) {
        message = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

/// The same where nobody may throw.
template <class Body>
void run_ranks(int size, Body body) {
  const std::vector<std::string> messages = messages_of_ranks(size, body);
  for (int rank = 0; rank < size; ++rank) {
    EXPECT_EQ(messages[static_cast<std::size_t>(rank)], "") << "rank " << rank << " threw";
  }
}

/// The strategies that run between threads.
inline std::vector<std::string> strategies_of_threads() {
  std::vector<std::string> names;
  const Strategies strategies;
  for (const std::string_view name : strategies.names()) {
    if (!needs_engine(strategies.needs_of(name))) names.emplace_back(name);
  }
  return names;
}

/// Whether the strategy reads other ranks' memory.
inline bool needs_peer_access(std::string_view strategy) {
  return Strategies().needs_of(strategy) == Needs::peer_access;
}

/// A strategy's or world's name as a part of a test's.
inline std::string identifier(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// A device whose communication stream runs in place.
inline std::unique_ptr<Device> in_place_device() {
  return open_device({}, {.threads = 1, .overlap = false});
}

inline View view_of(std::vector<float>& values) {
  return {values.data(), {static_cast<std::int64_t>(values.size())}};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ringlet::comm
