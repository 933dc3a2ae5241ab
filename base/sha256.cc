#include "base/sha256.h"

#include <openssl/evp.h>

#include <array>

#include "base/error.h"

namespace ringlet {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

void check(int status) {
  if (status != 1) throw Error("libcrypto cannot compute SHA-256; install OpenSSL anew");
}

}  // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, FreeContext> handle{EVP_MD_CTX_new()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  check(context_->handle ? EVP_DigestInit_ex(context_->handle.get(), EVP_sha256(), nullptr) : 0);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::uint8_t> bytes) {
  check(EVP_DigestUpdate(context_->handle.get(), bytes.data(), bytes.size()));
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  check(EVP_DigestFinal_ex(context_->handle.get(), digest.data(), &length));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace ringlet
