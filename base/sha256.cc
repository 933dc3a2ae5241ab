#define OPENSSL_SUPPRESS_DEPRECATED  // in favour of EVP (sha256.h)
#include "base/sha256.h"

#include <openssl/sha.h>

#include <algorithm>

namespace ringlet {

struct Sha256::Context {
  SHA256_CTX state{};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) { ::SHA256_Init(&context_->state); }

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::uint8_t> bytes) {
  ::SHA256_Update(&context_->state, bytes.data(), bytes.size());
}

void Sha256::update(std::string_view text) {
  ::SHA256_Update(&context_->state, text.data(), text.size());
}

Sha256Digest Sha256::digest() {
  Sha256Digest digest{};
  ::SHA256_Final(digest.data(), &context_->state);
  return digest;
}

std::string Sha256::finish() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest()) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view text) {
  constexpr std::size_t kBlock = SHA256_CBLOCK;
  constexpr std::uint8_t kInner = 0x36, kOuter = 0x5c;
  std::array<std::uint8_t, kBlock> inner{}, outer{};
  if (key.size() <= kBlock) {
    std::ranges::copy(key, inner.begin());
  } else {
    Sha256 shortened;
    shortened.update(key);
    std::ranges::copy(shortened.digest(), inner.begin());
  }
  std::ranges::transform(inner, outer.begin(), [](auto byte) { return byte ^ kOuter; });
  std::ranges::transform(inner, inner.begin(), [](auto byte) { return byte ^ kInner; });
  Sha256 first, second;
  first.update(inner);
  first.update(text);
  second.update(outer);
  second.update(first.digest());
  return second.digest();
}

}  // namespace ringlet
