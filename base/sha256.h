// SHA-256 (FIPS 180-4) of bytes that come in pieces, computed by libcrypto.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ringlet {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::uint8_t> bytes);
  /// 64 lower-case hexadecimal digits. Call once, last.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

}  // namespace ringlet
