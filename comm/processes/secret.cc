#include "comm/processes/secret.h"

#include <sys/random.h>

#include <cerrno>

#include "base/sha256.h"
#include "comm/core/errors.h"

namespace ringlet::comm {

std::string new_secret() {
  std::string secret(kProofBytes, '\0');
  ssize_t got = 0;
  do {  // so few bytes come whole
    got = ::getrandom(secret.data(), secret.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(secret.size())) return secret;
  throw CommError("the kernel gives no random bytes (getrandom); look at the sandbox's rules");
}

std::string proof(std::string_view secret, std::string_view what) {
  const Sha256Digest code = hmac_sha256(secret, what);
  static_assert(code.size() == kProofBytes);
  return {code.begin(), code.end()};
}

bool is_same(std::string_view ours, std::string_view theirs) {
  unsigned differs = ours.size() == theirs.size() ? 0 : 1;
  for (std::size_t i = 0; i < theirs.size() && i < ours.size(); ++i) {
    differs |= static_cast<unsigned>(ours[i] ^ theirs[i]);
  }
  return differs == 0;
}

std::string fingerprint(std::string_view secret) {
  constexpr std::size_t kShown = 8;
  return hexadecimal(proof(secret, "ringlet fingerprint").substr(0, kShown));
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text.append(1, kDigits[value >> 4]).append(1, kDigits[value & 15U]);
  }
  return text;
}

}  // namespace ringlet::comm
