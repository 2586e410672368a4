/* base/digest.h — a 64-bit running hash of results: same run, same digest; hashes of things.
 * Not cryptographic. Independent of endianness, addresses and padding. */
#ifndef LS_BASE_DIGEST_H
#define LS_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  uint64_t state;
} LsDigest;

/* FNV-1a, 64 bit (G. Fowler, L. C. Noll, K.-P. Vo): xor a byte in, multiply by the prime. Basis and prime are
 * the published ones. */
#define LS_FNV_BASIS UINT64_C (14695981039346656037)
#define LS_FNV_PRIME UINT64_C (1099511628211)

static inline void
ls_digest_byte (LsDigest *d, uint8_t byte)
{
  d->state = (d->state ^ byte) * LS_FNV_PRIME;
}

/* Least significant byte first, whatever the machine does. */
static inline void
ls_digest_u64 (LsDigest *d, uint64_t value)
{
  for (int shift = 0; shift < 64; shift += 8)
    ls_digest_byte (d, (uint8_t) (value >> shift));
}

void ls_digest_init (LsDigest *d);
void ls_digest_bytes (LsDigest *d, const void *data, size_t n);
uint64_t ls_digest_get (const LsDigest *d);

/* 128 bits that stand for a thing: two things that differ have the same by no chance that counts. */
typedef struct {
  uint64_t a, b;
} LsSig;

/* Of hash tables. */
unsigned ls_sig_hash (const void *key);
int ls_sig_is_same (const void *a, const void *b);

/* Finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t
ls_sig_mix (uint64_t x)
{
  x = (x ^ x >> 30) * UINT64_C (0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C (0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* Its increment, the golden ratio, and the square root of 2: no relation between the two. */
#define LS_SIG_SALT_A UINT64_C (0x9e3779b97f4a7c15)
#define LS_SIG_SALT_B UINT64_C (0x6a09e667f3bcc909)

/* Order matters. */
static inline void
ls_sig_add (LsSig *sig, uint64_t value)
{
  sig->a = ls_sig_mix (sig->a * 3 + value + LS_SIG_SALT_A);
  sig->b = ls_sig_mix ((sig->b ^ value) * 5 + LS_SIG_SALT_B);
}

void ls_sig_add_double (LsSig *sig, double value);

static inline void
ls_sig_add_sig (LsSig *sig, LsSig other)
{
  ls_sig_add (sig, other.a);
  ls_sig_add (sig, other.b);
}

static inline LsSig
ls_sig_of (uint64_t value)
{
  return (LsSig) { ls_sig_mix (value + LS_SIG_SALT_A), ls_sig_mix (value ^ LS_SIG_SALT_B) };
}

/* Hash of (thing, which of its own): the thing's for 0. */
static inline LsSig
ls_sig_with (LsSig of_thing, uint32_t which)
{
  return which == 0 ? of_thing : (LsSig) { ls_sig_mix (of_thing.a + which), ls_sig_mix (of_thing.b ^ which) };
}

/* A sum: order is of no consequence. */
static inline void
ls_sig_add_times (LsSig *sum, uint64_t n, LsSig s)
{
  sum->a += n * s.a;
  sum->b += n * s.b;
}

/* Of a key without gaps, for a hash table. */
unsigned ls_hash_bytes (const void *key, size_t n);

/* Defines NAME_hash() and NAME_equal(), which make a type without gaps the key of a GHashTable. */
#define LS_DEFINE_BYTES_KEY(name, Type)                                                                      \
  static unsigned name##_hash (const void *key)                                                              \
  {                                                                                                          \
    return ls_hash_bytes (key, sizeof (Type));                                                               \
  }                                                                                                          \
                                                                                                             \
  static int name##_equal (const void *a, const void *b)                                                     \
  {                                                                                                          \
    return memcmp (a, b, sizeof (Type)) == 0;                                                                \
  }

#endif
