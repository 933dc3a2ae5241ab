// How messages name ranks.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace ringlet::comm {

/// "replica 2", "replicas 0, 1 and 3"
std::string text_of(const char* noun, const std::vector<int>& numbers);

/// "rank 2", "ranks 0, 1 and 3"
std::string text_of(const std::vector<int>& ranks);
/// "process 2", "processes 0, 1 and 3"
std::string text_of_processes(const std::vector<int>& processes);

/// What each rank has, equal ones together: "ranks 0 and 1 have 64, rank 2 has 128".
std::string text_of_values(const std::vector<std::string>& value_of_rank);

/// What messages call a world's ranks: by their numbers, until somebody knows more of them.
class RankNames {
 public:
  /// "stage 1 (layer3 .. fc), replicas 0 and 1, ranks 2 and 3", of ranks of the world.
  using Words = std::function<std::string(const std::vector<int>& ranks)>;

  /// Any thread, as all of these. What `words` needs it keeps: it is called until the world ends.
  void set(Words words);
  bool are_set() const;
  std::string of(const std::vector<int>& ranks) const;
  std::string of(int rank) const { return of(std::vector<int>{rank}); }

 private:
  mutable std::mutex mutex_;
  Words words_;
};

}  // namespace ringlet::comm
