/*
 * wide.h
 *		Loops over vectors for whose sake the compiler should use the widest registers
 *		that the CPU at hand turns out to have.
 */
#ifndef UNIFDIAG_WIDE_H
#define UNIFDIAG_WIDE_H

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("arch=haswell", "default"), optimize("O3")))
#else
#define WIDE
#endif

#endif /* UNIFDIAG_WIDE_H */
