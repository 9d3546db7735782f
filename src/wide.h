/*
 * wide.h
 *		Loops over vectors for whose sake the compiler should use the widest registers
 *		that the CPU at hand turns out to have.
 */
#ifndef UNIFDIAG_WIDE_H
#define UNIFDIAG_WIDE_H

/*
 * AVX2 does not bring fused multiplications along, so that both versions round alike.  Not
 * by the name of an architecture: the choice would then ask for that very model of CPU.
 */
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("avx2", "default"), optimize("O3")))
#else
#define WIDE
#endif

#endif /* UNIFDIAG_WIDE_H */
