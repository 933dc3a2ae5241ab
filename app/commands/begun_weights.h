// --init: which weights a run begins with, and what it takes of them.
#pragma once

#include <filesystem>

#include "app/cli/flags.h"
#include "train/setup/run_setup.h"

namespace ringlet::app {

/// A model's name stands for weights that others have published: `init` becomes their file, which
/// is printed. Throws FileError where there is none.
void find_named_weights(std::filesystem::path& init);

/// Prints which file it is, how many of its tensors are taken, whether the last layer starts anew
/// and why, and that --fine-tune is there. Throws FileError for weights that say of which other
/// model they are, and that do not fit this one; of others that do not fit nothing is said.
void print_init(const RawFlags& flags, const train::RunSetup& setup);

/// Warns of --freeze all-but-head without weights: what is frozen is worth keeping where it has
/// been learnt.
void warn_of_frozen_chance(const train::TrainOptions& options);

}  // namespace ringlet::app
