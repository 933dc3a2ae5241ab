#include "train/loop/sharded_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/elementwise.h"
#include "kernels/host_copy.h"
#include "train/files/centres.h"
#include "train/files/row_files.h"
#include "train/files/safetensors.h"
#include "train/reports/failure.h"

namespace ringlet::train {

namespace {

constexpr std::int64_t kBlock = 1 << 18;  // numbers of rows that travel at once: 1 MiB

std::vector<nn::PlannedParameter> sharded_of(const nn::Plan& plan) {
  std::vector<nn::PlannedParameter> sharded;
  for (const nn::PlannedParameter& planned : plan.parameters) {
    if (planned.placement == nn::Placement::rows) sharded.push_back(planned);
  }
  return sharded;
}

std::int64_t longest_row(const std::vector<nn::PlannedParameter>& sharded) {
  std::int64_t longest = 1;
  for (const nn::PlannedParameter& planned : sharded) {
    longest = std::max(longest, planned.shape.count_per_sample());
  }
  return longest;
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Of an arena in host memory, the tensor of a parameter.
template <class Arena>
auto& tensor_of(Arena& arena, const nn::PlannedParameter& planned) {
  return arena.is_of_parameters() ? arena.tensors[at(planned.id)] : arena.tensors.front();
}

namespace fs = std::filesystem;

/// Throws Error for the first number of these rows that is not finite.
void require_finite(const std::vector<float>& rows, const std::string& tensor, std::int64_t first,
                    std::int64_t columns, std::int64_t step) {
  const auto broken = std::ranges::find_if(rows, [](float x) { return !std::isfinite(x); });
  if (broken == rows.end()) return;
  throw NumbersError(fmt::format(
      "the update of step {} left numbers that are not finite in the {} of the centres, first in "
      "row {}; nothing was saved over the former state. Try a smaller --lr",
      step, tensor, first + (broken - rows.begin()) / columns));
}

}  // namespace

ShardedRows::ShardedRows(Device& device, comm::Communicator& communicator,
                         const nn::Parameters& parameters)
    : device_(device),
      communicator_(communicator),
      parameters_(parameters),
      position_(parameters.registry().along),
      planned_(sharded_of(parameters.plan())),
      block_(device, {std::max(kBlock, longest_row(planned_))}) {}

ShardedRows::Numbers ShardedRows::numbers_of(const View& arena,
                                             const nn::PlannedParameter& planned) const {
  return {planned, arena.slice(planned.begin, planned.end), planned.shape.count_per_sample()};
}

ShardedRows::Numbers ShardedRows::numbers_of(const StateArena& arena,
                                             const nn::PlannedParameter& planned) const {
  if (arena.is_of_parameters()) return numbers_of(arena.numbers.view(), planned);
  return {planned, arena.rows_of == planned.id ? arena.numbers.view() : View(), 1};
}

/// Calls move(rank, rows) for all rows, those of one rank after those of another, a block at a
/// time.
template <class Move>
void ShardedRows::for_each_block(const Numbers& numbers, Move move) {
  const std::int64_t most =
      std::max<std::int64_t>(1, kBlock / std::max<std::int64_t>(1, numbers.columns));
  for (int rank = 0; rank < position_.ranks; ++rank) {
    const nn::Rows held = position_.held(numbers.planned.rows, rank);
    for (std::int64_t begin = held.begin; begin < held.end; begin += most) {
      move(rank, nn::Rows{begin, std::min(held.end, begin + most)});
    }
  }
}

void ShardedRows::collect(const Numbers& numbers, Whole& whole) {
  if (numbers.of_rank.absent()) return;
  Stream& compute = device_.compute();
  const std::int64_t columns = numbers.columns;
  const std::int64_t first = position_.held(numbers.planned.rows, position_.rank).begin;
  if (position_.rank == 0) whole.resize(at(numbers.planned.rows * columns));
  for_each_block(numbers, [&](int rank, const nn::Rows& rows) {
    const View block = block_.view().slice(0, rows.size() * columns);
    if (rank == position_.rank) {
      const std::int64_t begin = (rows.begin - first) * columns;
      copy(compute, numbers.of_rank.slice(begin, begin + block.count()), block);
      compute.synchronize();
    }
    if (position_.ranks > 1) {
      communicator_.broadcast(device_.communication(), rank, block, numbers.planned.name);
      device_.communication().synchronize();
      communicator_.require_alive();
    }
    if (position_.rank == 0) copy_to_host(compute, block, whole.data() + rows.begin * columns);
  });
}

void ShardedRows::hand_out(const Numbers& numbers, const Whole* whole) {
  if (numbers.of_rank.absent()) return;
  Stream& compute = device_.compute();
  const std::int64_t columns = numbers.columns;
  const std::int64_t first = position_.held(numbers.planned.rows, position_.rank).begin;
  for_each_block(numbers, [&](int rank, const nn::Rows& rows) {
    const View block = block_.view().slice(0, rows.size() * columns);
    if (whole != nullptr) copy_from_host(compute, whole->data() + rows.begin * columns, block);
    compute.synchronize();
    if (position_.ranks > 1) {
      communicator_.broadcast(device_.communication(), 0, block, numbers.planned.name);
      device_.communication().synchronize();
      communicator_.require_alive();
    }
    if (rank != position_.rank) return;
    const std::int64_t begin = (rows.begin - first) * columns;
    copy(compute, block, numbers.of_rank.slice(begin, begin + block.count()));
    compute.synchronize();
  });
}

void ShardedRows::collect(HostState& state, std::span<const StateArena> optimizer,
                          bool rows_of_loss) {
  for (const nn::PlannedParameter& planned : planned_) {
    if (planned.of_loss && !rows_of_loss) continue;
    Whole unused;
    const bool writes = position_.rank == 0;
    collect(numbers_of(parameters_.values(), planned),
            writes ? state.values[at(planned.id)] : unused);
    for (std::size_t a = 0; a < optimizer.size(); ++a) {
      collect(numbers_of(optimizer[a], planned),
              writes ? tensor_of(state.optimizer[a], planned) : unused);
    }
  }
}

void ShardedRows::hand_out(const HostState* read, std::span<const StateArena> optimizer) {
  // What rank 0 has of each of these parameters: "v" the values, "s" the optimiser's state.
  std::string has;
  for (const nn::PlannedParameter& planned : planned_) {
    if (read == nullptr) continue;
    has += read->values[at(planned.id)].empty() ? '-' : 'v';
    const bool state = std::ranges::any_of(read->optimizer, [&](const HostArena& arena) {
      return (arena.is_of_parameters() || arena.rows_of == planned.id) &&
             !tensor_of(arena, planned).empty();
    });
    has += state ? 's' : '-';
  }
  has = communicator_.gather_text(device_.communication(), has, "rows that were read").front();
  if (has.empty()) return;
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    const nn::PlannedParameter& planned = planned_[i];
    if (has[2 * i] == 'v') {
      hand_out(numbers_of(parameters_.values(), planned),
               read == nullptr ? nullptr : &read->values[at(planned.id)]);
    }
    for (std::size_t a = 0; a < optimizer.size() && has[2 * i + 1] == 's'; ++a) {
      hand_out(numbers_of(optimizer[a], planned),
               read == nullptr ? nullptr : &tensor_of(read->optimizer[a], planned));
    }
  }
}

bool ShardedRows::has_loss() const {
  return std::ranges::any_of(planned_, [](const auto& each) { return each.of_loss; });
}

const nn::PlannedParameter& ShardedRows::of_loss() const {
  const auto found = std::ranges::find_if(planned_, [](const auto& each) { return each.of_loss; });
  require(found != planned_.end(), "ShardedRows", "the loss has no rows");
  return *found;
}

std::map<std::string, ShardedRows::Numbers> ShardedRows::tensors_of_file(
    std::span<const StateArena> optimizer) {
  const nn::PlannedParameter& planned = of_loss();
  std::map<std::string, Numbers> tensors;
  tensors.emplace(kWeightTensor, numbers_of(parameters_.values(), planned));
  for (const StateArena& arena : optimizer) {
    const Numbers numbers = numbers_of(arena, planned);
    if (!numbers.of_rank.absent()) tensors.emplace(arena.name, numbers);
  }
  return tensors;
}

ShardedRows::Written ShardedRows::write(const fs::path& folder,
                                        std::span<const StateArena> optimizer, std::int64_t step) {
  const std::map<std::string, Numbers> tensors = tensors_of_file(optimizer);
  const nn::Rows held = position_.held(of_loss().rows, position_.rank);
  const RowTensors of_arenas = row_tensors_of({optimizer.begin(), optimizer.end()}, of_loss().id);
  std::vector<TensorSpec> specs;
  for (const auto& [name, numbers] : tensors) {
    specs.push_back({name, "F32", {held.size()}});
    if (std::ranges::find(of_arenas.one_number, name) == of_arenas.one_number.end())
      specs.back().shape.push_back(numbers.columns);
  }
  Written written{.name = row_file_name(position_.rank, position_.ranks)};
  const fs::path file = folder / written.name;
  SafetensorsWriter writer(file, specs, {{kFirstRow, std::to_string(held.begin)}});
  std::vector<float> piece;
  for (const auto& [name, numbers] : tensors) {
    const std::int64_t most =
        std::max<std::int64_t>(1, kBlock / std::max<std::int64_t>(1, numbers.columns));
    for (std::int64_t row = 0; row < held.size(); row += most) {
      const std::int64_t end = std::min(held.size(), row + most);
      const View part = numbers.of_rank.slice(row * numbers.columns, end * numbers.columns);
      piece.resize(at(part.count()));
      copy_to_host(device_.compute(), part, piece.data());
      require_finite(piece, name, held.begin + row, numbers.columns, step);
      if (name == kWeightTensor) {
        written.hash += hash_of_rows(piece.data(), held.begin + row, end - row, numbers.columns);
      }
      writer.write(piece.data(), piece.size() * sizeof(float));
    }
  }
  written.sum = writer.commit();
  written.bytes = fs::file_size(file);
  return written;
}

void ShardedRows::read(const fs::path& folder, std::span<const StateArena> optimizer) {
  const nn::PlannedParameter& planned = of_loss();
  const RowFiles files(folder);
  const RowTensors names = row_tensors_of({optimizer.begin(), optimizer.end()}, planned.id);
  files.match(planned.rows, planned.shape.count_per_sample(), names.whole, names.one_number);
  const nn::Rows held = position_.held(planned.rows, position_.rank);
  std::vector<float> piece;
  for (const auto& [name, numbers] : tensors_of_file(optimizer)) {
    const std::int64_t most =
        std::max<std::int64_t>(1, kBlock / std::max<std::int64_t>(1, numbers.columns));
    for (std::int64_t row = held.begin; row < held.end; row += most) {
      const std::int64_t end = std::min(held.end, row + most);
      const View part = numbers.of_rank.slice((row - held.begin) * numbers.columns,
                                              (end - held.begin) * numbers.columns);
      piece.resize(at(part.count()));
      files.read(name, row, end, piece.data());
      copy_from_host(device_.compute(), piece.data(), part);
    }
  }
}

}  // namespace ringlet::train
