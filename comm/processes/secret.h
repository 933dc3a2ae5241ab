// Secrets of a run: random ones, and proofs that somebody knows one without saying it. HMAC with
// SHA-256 (RFC 2104, FIPS 180-4).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringlet::comm {

inline constexpr std::size_t kProofBytes = 32;

/// 32 random bytes of the kernel's.
std::string new_secret();
/// HMAC-SHA256 of `what` under `secret`, kProofBytes bytes.
std::string proof(std::string_view secret, std::string_view what);
/// Takes as long for any `theirs` of the same length, so that nobody learns by the clock how much
/// of it is right.
bool is_same(std::string_view ours, std::string_view theirs);
/// 16 hexadecimal digits that stand for the secret where it must not be shown.
std::string fingerprint(std::string_view secret);
/// Two hexadecimal digits for each byte.
std::string hexadecimal(std::string_view bytes);

}  // namespace ringlet::comm
