// What a run is measured on beside its test data: pairs of pictures (train/verify.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/recipe/option.h"

namespace ringlet::train {

struct VerifySpec {
  std::string verify{};  ///< files of pairs, with commas between; empty: none
  int verify_every = 0;  ///< steps between two verifications; 0: at the end of each epoch

  bool operator==(const VerifySpec&) const = default;
};

std::vector<Option<VerifySpec>> verify_options();

/// The files that VerifySpec::verify names. A comma is part of a name where the whole text names a
/// file. Throws ContractError for an empty name, and for a file that is named twice.
std::vector<std::filesystem::path> verify_files(const VerifySpec& spec);

/// What the sets in these files are called: "lfw" of data/lfw.bin. Of files that share that name,
/// as many folders as tell them apart stand before it: "cfp/pairs".
std::vector<std::string> names_of_sets(const std::vector<std::filesystem::path>& files);

}  // namespace ringlet::train
