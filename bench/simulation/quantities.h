// How times, rates, machines and slow ranks are written on a command line. What is not written so,
// or is no such thing, is nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ringlet::bench {

/// "5us": ns, us, ms or s, from a picosecond to 1000 s.
std::optional<double> parse_seconds(std::string_view text);
/// "50G": bytes a second in powers of ten (K, M, G, T), from 1K to 1000T.
std::optional<double> parse_rate(std::string_view text);
/// 4.2e-5 as "42 us", 25e6 as "25M": three or more digits, as parse_seconds() and parse_rate() read
/// them.
std::string seconds_text(double seconds);
std::string rate_text(double bytes_per_second);

/// "504K", "1000 bytes".
std::string bytes_text(std::int64_t bytes);

/// Ranks on machines, equally many on each.
struct Layout {
  int machines = 1, each = 2;
  int ranks() const { return machines * each; }
};
/// "512x8": 512 machines of 8 ranks, of 2 to kMostRanks in all.
std::optional<Layout> parse_layout(std::string_view text);

/// More need memory that few machines have: a ring of 4096 has 33.5 million steps.
inline constexpr int kMostRanks = 4096;

struct SlowRank {
  int rank = 0;
  double factor = 1;
};
/// "17:3x": rank 17 takes three times as long. From 1 to a million.
std::optional<SlowRank> parse_slow(std::string_view text);

}  // namespace ringlet::bench
