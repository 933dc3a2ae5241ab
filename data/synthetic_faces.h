// Drawn stand-ins for faces: any number of identities without any file, to see how fast a run is.
// `--data synthetic-faces:C` has C of them.
//
//   sample    identity by a hash of (seed, split, index); an identity may have no sample
//   picture   RGB: a pattern of 8 x 8 coloured squares that its identity alone decides, darkened by
//             up to a quarter, with noise of the sample's own
//
// A pure function of (seed, split, index): nothing is kept but the identities' numbers and names.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"

namespace ringlet::data {

inline constexpr const char* kSyntheticFacesName = "synthetic-faces";  ///< as --data names it

struct SyntheticFacesOptions {
  std::int64_t train = 60000;
  std::int64_t test = 10000;
  std::uint64_t seed = 1;
  int image_size = 112;  ///< pixels of a side
  StopRequest stop_requested{};
};

/// How many `data`, as --data names it, asks for; 0: it is no such name.
std::int64_t synthetic_identities(const std::string& data);

/// What is wrong with a number of identities, in words; empty: nothing.
std::string fault_of_identities(const std::string& identities);

/// Of `identities`, a whole number from 1 on in decimal. Throws DataError for any other text, and
/// where there is no memory for so many names.
Splits make_synthetic_faces(const std::string& identities,
                            const SyntheticFacesOptions& options = {});

}  // namespace ringlet::data
