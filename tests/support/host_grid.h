// Runs the kernels of kernels/grid/ on the host, one thread after another: the threads of a grid in
// a shuffled order, the blocks of a grid and the threads of a block in each phase as well. So a
// kernel that depends on an order, or reads what another thread of the same phase writes, gives
// different results for different seeds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/grid/grid.h"
#include "kernels/grid/pack.h"

namespace ringlet::test {

class HostGrid {
 public:
  explicit HostGrid(std::uint32_t seed) : random_(seed) {}

  struct Adder {
    void operator()(std::int32_t* address, std::int32_t value) const { *address += value; }
  };

  template <class F>
  void for_each(const char*, std::int64_t n, const F& f) {
    for (const std::int64_t i : shuffled(0, n)) f(i);
  }

  template <class F>
  void for_each_pack(const char*, std::int64_t n, const F& f) {
    const std::int64_t packs = f.takes_packs() ? n / F::kPack : 0;
    for (const std::int64_t i : shuffled(F::kPack * packs, n)) f.template apply<1>(i);
    for (const std::int64_t i : shuffled(0, packs)) f.template apply<F::kPack>(i);
  }

  template <class Program>
  void run_blocks(const char*, std::int64_t blocks, const Program& program) {
    for (const std::int64_t block : shuffled(0, blocks)) {
      typename Program::Shared shared{};
      run_phases(program, block, blocks, shared);
    }
  }

  template <class Program>
  void run_turns(const char*, std::int64_t blocks, const Program& program) {
    std::vector<typename Program::State> states(Program::kThreads);
    typename Program::Shared shared{};
    for (const std::int64_t block : shuffled(0, blocks)) {
      std::memset(&shared, 0xFF, sizeof shared);
      std::memset(states.data(), 0xFF, states.size() * sizeof states[0]);
      const auto each = [&](auto f) {
        for (const std::int64_t thread : shuffled(0, Program::kThreads)) {
          f(grid::ThreadIndex{block, blocks, static_cast<int>(thread)},
            states[static_cast<std::size_t>(thread)]);
        }
      };
      each([&](const auto& index, auto& state) { program.begin(index, shared, state); });
      each([&](const auto& index, auto& state) { program.start(index, shared, state); });
      const std::int32_t turns = program.turns(block);
      for (std::int32_t turn = 0; turn < turns; ++turn) {
        each([&](const auto& index, auto& state) { program.fill(index, shared, state); });
        each([&](const auto& index, auto& state) { program.work(turn, index, shared, state); });
      }
      each([&](const auto& index, auto& state) { program.end(index, state); });
    }
  }

  /// A stage is full of NaN before it is filled: nothing of the turn before may be read.
  template <class Program>
  void run_pipeline(const char*, std::int64_t blocks, const Program& program) {
    std::vector<typename Program::State> states(Program::kThreads);
    std::vector<typename Program::Stage> stages(Program::kStages);
    for (const std::int64_t block : shuffled(0, blocks)) {
      std::memset(static_cast<void*>(states.data()), 0xFF, states.size() * sizeof states[0]);
      const auto each = [&](auto f) {
        for (const std::int64_t thread : shuffled(0, Program::kThreads)) {
          f(grid::ThreadIndex{block, blocks, static_cast<int>(thread)},
            states[static_cast<std::size_t>(thread)]);
        }
      };
      each([&](const auto& index, auto& state) { program.begin(index, state); });
      const std::int32_t turns = program.turns(block);
      const auto fetch = [&](std::int32_t turn) {
        if (turn >= turns) return;
        auto& stage = stages[static_cast<std::size_t>(turn % Program::kStages)];
        std::memset(static_cast<void*>(&stage), 0xFF, sizeof stage);
        each([&](const auto& index, auto& state) { program.fetch(turn, index, stage, state); });
      };
      for (std::int32_t turn = 0; turn < Program::kStages - 1; ++turn) fetch(turn);
      for (std::int32_t turn = 0; turn < turns; ++turn) {
        fetch(turn + Program::kStages - 1);
        const auto& stage = stages[static_cast<std::size_t>(turn % Program::kStages)];
        each([&](const auto& index, auto& state) { program.work(index, stage, state); });
      }
      each([&](const auto& index, auto& state) { program.end(index, state); });
    }
  }

  template <class Program>
  void run_teams(const char* name, std::int64_t teams, const Program& program) {
    std::vector<std::int64_t> through(static_cast<std::size_t>(teams));
    run_teams(name, teams, program, [&](std::int64_t team) {
      return ++through[static_cast<std::size_t>(team)] == program.team_size.divisor();
    });
  }
  /// is_last(team): whether the block of the team that is through is its last.
  template <class Program, class IsLast>
  void run_teams(const char*, std::int64_t teams, const Program& program, IsLast is_last) {
    const std::int64_t size = program.team_size.divisor();
    for (const std::int64_t block : shuffled(0, teams * size)) {
      typename Program::Shared shared{};
      run_phases(program, block, teams * size, shared);
      if (!is_last(block / size)) continue;
      for (int k = 0; k < Program::kTeamPhases; ++k) {
        for (const std::int64_t thread : shuffled(0, Program::kThreads)) {
          program.team_phase(k, {block, teams * size, static_cast<int>(thread)}, shared);
        }
      }
    }
  }

  std::int64_t blocks_to_fill() const { return 3; }

  template <class T>
  T* workspace_of(std::int64_t count) {
    workspace_.assign(static_cast<std::size_t>(count) * sizeof(T), 0xFF);
    return reinterpret_cast<T*>(workspace_.data());
  }

 private:
  template <class Program>
  void run_phases(const Program& program, std::int64_t block, std::int64_t blocks,
                  typename Program::Shared& shared) {
    std::memset(&shared, 0xFF, sizeof shared);  // as a GPU, it holds nothing of use
    for (int k = 0; k < Program::kPhases; ++k) {
      for (const std::int64_t thread : shuffled(0, Program::kThreads)) {
        program.phase(k, {block, blocks, static_cast<int>(thread)}, shared);
      }
    }
  }

  /// Of very many, stretches are shuffled, each of them backwards: that takes a tenth of the time.
  std::vector<std::int64_t> shuffled(std::int64_t begin, std::int64_t end) {
    constexpr std::int64_t kMany = 1 << 14, kStretch = 64;
    const std::int64_t stretch = end - begin < kMany ? 1 : kStretch;
    std::vector<std::int64_t> starts;
    for (std::int64_t start = begin; start < end; start += stretch) starts.push_back(start);
    std::shuffle(starts.begin(), starts.end(), random_);
    std::vector<std::int64_t> numbers;
    numbers.reserve(static_cast<std::size_t>(end - begin));
    for (const std::int64_t start : starts) {
      for (std::int64_t i = std::min(start + stretch, end); i > start; --i)
        numbers.push_back(i - 1);
    }
    return numbers;
  }

  std::mt19937 random_;
  std::vector<unsigned char> workspace_;
};

}  // namespace ringlet::test
