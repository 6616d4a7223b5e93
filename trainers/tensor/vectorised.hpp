// MUSTER_VECTORISED before a function's definition: it is compiled for several generations of x86-64, and the
// machine's best is chosen when the program starts, so that a binary stays portable and is fast all the same.
// The trainers are compiled with -ffp-contract=off: without fused multiply-adds every generation computes
// the same bits, so replicas on unlike nodes do not drift apart in the optimizer.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
// (Sanitizers cannot run the choice: it happens before their own start.)
#define MUSTER_VECTORISED __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define MUSTER_VECTORISED
#endif
