// ShardedRows: what ranks tell each other of parameters whose rows are cut over them, where rank 0
// reads and writes files.
//
// Files have whole tensors under the model's names, and know no number of ranks. Rows travel in
// blocks from the rank that has them to rank 0, and back, so that no device needs room for more
// than a block. Rank 0 has them whole in the host's memory, as all else that it writes. The rows of
// a loss may be too many for that: then each rank writes its own (train/files/row_files.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "kernels/device.h"
#include "nn/parameters.h"
#include "train/files/state.h"

namespace ringlet::train {

class ShardedRows {
 public:
  /// Everything outlives it.
  ShardedRows(Device& device, comm::Communicator& communicator, const nn::Parameters& parameters);

  /// On rank 0, `state` has the rows of all ranks afterwards, where it had rank 0's; without
  /// `rows_of_loss`, but for those of the loss. Collective.
  void collect(HostState& state, std::span<const StateArena> optimizer, bool rows_of_loss = true);
  /// Whether the loss's own are among them.
  bool has_loss() const;
  /// What `read`, of rank 0, has of these rows goes to the ranks that own them; it is null on
  /// the others, may be null there too, or have no state of the optimiser. Collective.
  void hand_out(const HostState* read, std::span<const StateArena> optimizer);

  /// A file of rows that was written.
  struct Written {
    std::string name, sum;
    std::uint64_t bytes = 0, hash = 0;  ///< hash_of_rows()
  };
  /// Writes what this rank has of the loss's rows, and of `optimizer`, into a folder of such files,
  /// a piece at a time. Throws FileError, and Error where a number is not finite, as `step` left
  /// it.
  Written write(const std::filesystem::path& folder, std::span<const StateArena> optimizer,
                std::int64_t step);
  /// Reads what this rank has of them, whoever wrote it. Throws FileError.
  void read(const std::filesystem::path& folder, std::span<const StateArena> optimizer);

 private:
  using Whole = std::vector<float>;
  /// What is collected of a parameter: its rows, or a number of each.
  struct Numbers {
    const nn::PlannedParameter& planned;
    View of_rank;  // f32, of the rows that it has, one behind the other
    std::int64_t columns = 0;
  };
  Numbers numbers_of(const View& arena, const nn::PlannedParameter& planned) const;
  /// Of an arena that has numbers of this parameter; absent where it has none.
  Numbers numbers_of(const StateArena& arena, const nn::PlannedParameter& planned) const;
  void collect(const Numbers& numbers, Whole& whole);
  void hand_out(const Numbers& numbers, const Whole* whole);
  template <class Move>
  void for_each_block(const Numbers& numbers, Move move);
  const nn::PlannedParameter& of_loss() const;
  /// By their names in a file of rows.
  std::map<std::string, Numbers> tensors_of_file(std::span<const StateArena> optimizer);

  Device& device_;
  comm::Communicator& communicator_;
  const nn::Parameters& parameters_;
  nn::AxisPosition position_;
  std::vector<nn::PlannedParameter> planned_;  // those whose rows are cut
  Tensor block_;                               // f32
};

}  // namespace ringlet::train
