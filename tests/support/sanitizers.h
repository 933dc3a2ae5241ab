// Whether a sanitizer watches this program's memory: it has an allocator of its own, which keeps
// what is freed.
#pragma once

namespace ringlet::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // of g++
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)  // of clang
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace ringlet::testing
