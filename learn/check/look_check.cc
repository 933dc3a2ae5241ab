// Chapter 3: what the learner saw, against the trace of their own ring: the messages are matched,
// and whose numbers are where is counted.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "comm/schedule/contributions.h"
#include "learn/check/answers.h"
#include "learn/check/own_json.h"

namespace ringlet::learn {

namespace {

constexpr const char* kRemedy = "scripts/learn 2 writes it when your ring has passed";

/// An exchange of the trace; -1 on a side that it has not.
struct Exchange {
  double begin_us = 0;
  int to = -1, from = -1;
  std::int64_t out_at = 0, out_bytes = 0, in_at = 0, in_bytes = 0;
  bool adds = false;
};
using OfRank = std::vector<Exchange>;

/// Where a message lies in the rank's data.
std::int64_t place_in(const nlohmann::json& event, const char* key) {
  const nlohmann::json& args = event.at("args");
  if (args.contains(key)) return args.at(key);
  throw Wrong(
      Verdict::not_written,
      fmt::format("rank {} of your ring has messages in memory of its own, of which a trace "
                  "does not say whose numbers they are; let it send from `data` and "
                  "receive into it, and pass chapter 2 again",
                  event.at("pid").get<int>()));
}

Exchange exchange_of(const nlohmann::json& event) {
  const nlohmann::json& args = event.at("args");
  Exchange exchange{.begin_us = event.at("ts")};
  if (event.at("name") != "receive") {
    exchange.to = args.at("peer");
    exchange.out_bytes = args.at("bytes");
    if (exchange.out_bytes > 0) exchange.out_at = place_in(event, "out_at");
  }
  if (args.contains("from")) {
    exchange.from = args.at("from");
    exchange.in_bytes = args.at("in_bytes");
    if (exchange.in_bytes > 0) exchange.in_at = place_in(event, "in_at");
    exchange.adds = args.value("op", "copy") != "copy";
  }
  return exchange;
}

/// Of the first call that there is, by rank, in the order of time.
std::vector<OfRank> read(const std::filesystem::path& trace) {
  const nlohmann::json json = own_json(trace, kRemedy);
  const nlohmann::json& events = json.is_array() ? json : json.at("traceEvents");
  std::map<std::int64_t, std::map<int, OfRank>> calls;
  for (const auto& event : events) {
    if (event.value("cat", "") != "exchange" || event.at("ph") != "X") continue;
    calls[event.at("args").value("call", std::int64_t{0})][event.at("pid")].push_back(
        exchange_of(event));
  }
  if (calls.empty()) throw Wrong(Verdict::not_written, fmt::format("no exchange yet; {}", kRemedy));
  std::vector<OfRank> ranks;
  for (auto& [rank, exchanges] : calls.begin()->second) ranks.push_back(std::move(exchanges));
  for (OfRank& rank : ranks) {
    std::stable_sort(rank.begin(), rank.end(),
                     [](const auto& a, const auto& b) { return a.begin_us < b.begin_us; });
  }
  return ranks;
}

/// Each rank's data lie behind those of the rank before.
comm::Schedule schedule_of(const std::vector<OfRank>& ranks) {
  std::int64_t bytes = 0;
  for (const OfRank& rank : ranks) {
    for (const Exchange& exchange : rank) {
      bytes = std::max(
          {bytes, exchange.out_at + exchange.out_bytes, exchange.in_at + exchange.in_bytes});
    }
  }
  comm::Schedule schedule;
  for (const OfRank& rank : ranks) {
    comm::RankSchedule own{.data = {bytes * schedule.size(), bytes}};
    for (const Exchange& exchange : rank) {
      own.steps.push_back({.to = exchange.to,
                           .from = exchange.from,
                           .out = schedule.number_of(exchange.out_bytes),
                           .in = schedule.number_of(exchange.in_bytes),
                           .combine = exchange.adds ? comm::Combine::add : comm::Combine::copy});
      own.addresses.push_back({own.data.begin + exchange.out_at, own.data.begin + exchange.in_at});
    }
    schedule.ranks.push_back(std::move(own));
  }
  return schedule;
}

struct Seen {
  std::vector<int> complete{};  // the part that is complete first, by rank
  std::vector<int> second{};    // who is in what rank 0 received in its second step
};

Seen seen_in(const std::vector<OfRank>& ranks) {
  std::set<std::int64_t> begins;
  for (const OfRank& rank : ranks) {
    for (const Exchange& exchange : rank) begins.insert(exchange.in_at);
  }
  Seen seen{.complete = std::vector<int>(ranks.size(), -1)};
  int received_by_0 = 0;
  comm::contributions_of(schedule_of(ranks), [&](const comm::Change& change) {
    const comm::Part& part = change.parts.front();
    int& complete = seen.complete[static_cast<std::size_t>(change.owner)];
    const bool has_all =
        std::all_of(part.counts.begin(), part.counts.end(), [](int count) { return count == 1; });
    if (has_all && complete < 0) {
      complete = static_cast<int>(std::distance(begins.begin(), begins.find(part.begin)));
    }
    if (change.owner != 0 || ++received_by_0 != 2) return;
    for (std::size_t rank = 0; rank < part.counts.size(); ++rank) {
      if (part.counts[rank] > 0) seen.second.push_back(static_cast<int>(rank));
    }
  });
  return seen;
}

/// Microseconds from a rank's own beginning until the one that it receives from has begun.
std::vector<double> waits_of(const std::vector<OfRank>& ranks) {
  std::map<std::pair<int, int>, std::vector<double>> sends;  // begins, by sender and receiver
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Exchange& exchange : ranks[rank]) {
      sends[{static_cast<int>(rank), exchange.to}].push_back(exchange.begin_us);
    }
  }
  std::vector<double> waits;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::map<int, std::size_t> received;
    double& wait = waits.emplace_back(0);
    for (const Exchange& exchange : ranks[rank]) {
      if (exchange.from < 0) continue;
      const auto& begins = sends[{exchange.from, static_cast<int>(rank)}];
      const std::size_t number = received[exchange.from]++;
      if (number < begins.size()) wait += std::max(0.0, begins[number] - exchange.begin_us);
    }
  }
  return waits;
}

void require_same(const Answers& answers, const std::string& key, const std::vector<int>& right,
                  const char* where) {
  std::vector<int> given = answers.list(key);
  if (key == "second") std::sort(given.begin(), given.end());
  if (given == right) return;
  throw Wrong(Verdict::wrong_values, fmt::format("{} = [{}] is not what your ring did: {}", key,
                                                 fmt::join(given, ", "), where));
}

}  // namespace

std::string check_look(const Answers& answers, const std::filesystem::path& trace) {
  constexpr double kAsLong = 0.9;
  const std::vector<OfRank> ranks = read(trace);
  const Seen seen = seen_in(ranks);
  require_same(answers, "complete", seen.complete,
               "look at the middle, where each row has one cell with all stripes");
  const auto sends = std::count_if(ranks[0].begin(), ranks[0].end(),
                                   [](const Exchange& exchange) { return exchange.to >= 0; });
  const double steps = answers.number("steps");
  if (steps != static_cast<double>(sends)) {
    throw Wrong(Verdict::wrong_values,
                fmt::format("steps = {:g} is not what a rank has; count the messages that it sends",
                            steps));
  }
  require_same(answers, "second", seen.second,
               "follow the second message into row 0, and look at its cell afterwards");
  const std::vector<double> waits = waits_of(ranks);
  const double longest = *std::max_element(waits.begin(), waits.end());
  const double waited = answers.number("waited");
  if (waited < 0 || waited >= static_cast<double>(waits.size()) ||
      waits[static_cast<std::size_t>(waited)] < kAsLong * longest) {
    throw Wrong(Verdict::wrong_values,
                fmt::format("waited = {:g}, but another rank waited longer", waited));
  }
  return fmt::format(
      "you have seen it: after {} of {} steps each rank has one part of all, and "
      "rank {:g} waited {:.1f} us",
      ranks.size() - 1, sends, waited, longest);
}

}  // namespace ringlet::learn
