#include "base/hash.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace ringlet {
namespace {

TEST(Hash, DependsOnEveryByteAndTheLength) {
  std::string bytes(83, 'a');
  const std::uint64_t hash = hash_bytes(bytes.data(), 83);
  EXPECT_EQ(hash_bytes(bytes.data(), 83), hash);
  for (char& byte : bytes) {
    byte = 'b';
    EXPECT_NE(hash_bytes(bytes.data(), 83), hash);
    byte = 'a';
  }
  const std::string zeros(64, '\0');
  EXPECT_NE(hash_bytes(zeros.data(), 3), hash_bytes(zeros.data(), 4));
  EXPECT_NE(hash_bytes(zeros.data(), 32), hash_bytes(zeros.data(), 64));
}

}  // namespace
}  // namespace ringlet
