// Files with one planted fault: the product's file with one text replaced by another, in the form
// of tests/*/faults.json. The broken rings of chapter 5 are such, and the self-test's samples.
#pragma once

#include <string>
#include <vector>

namespace ringlet::learn {

struct Plant {
  std::string name{};
  std::string file{};  ///< of the product
  std::string find{}, replace{};
  std::string verdict{}, words{};  ///< what the checker says of it, or the beginning of its words
};

/// Those in a file of JSON. Throws FileError, ContractError.
std::vector<Plant> read_plants(const std::string& file);

/// The product's file below `root` with the fault in it. Throws ContractError where its text does
/// not stand there exactly once.
std::string planted(const Plant& plant, const std::string& root);

}  // namespace ringlet::learn
