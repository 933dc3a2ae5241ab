// What a thread says to its processor while it spins.
#pragma once

namespace ringlet {

/// Saves power and lets the other thread of the core run.
#if defined(__x86_64__)
inline void relax_processor() { __builtin_ia32_pause(); }
#else
inline void relax_processor() {}
#endif

}  // namespace ringlet
