// SHA-256 (FIPS 180-4) of bytes that come in pieces, and HMAC with it (RFC 2104).
//
// By libcrypto's code for just that. EVP, its door to all digests, reads /usr/lib/ssl/openssl.cnf,
// which may have it open modules, and makes a program that is one file 3.6 MB larger.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ringlet {

using Sha256Digest = std::array<std::uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::uint8_t> bytes);
  void update(std::string_view text);
  /// Call one of these, once, last.
  Sha256Digest digest();
  /// 64 lower-case hexadecimal digits.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256Digest hmac_sha256(std::string_view key, std::string_view text);

}  // namespace ringlet
