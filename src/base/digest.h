/* base/digest.h — a 64-bit running hash of results: same run, same digest.
 * Not cryptographic. Independent of endianness, addresses and padding. */
#ifndef LS_BASE_DIGEST_H
#define LS_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  uint64_t state;
} LsDigest;

void ls_digest_init (LsDigest *d);
void ls_digest_u64 (LsDigest *d, uint64_t value);
void ls_digest_bytes (LsDigest *d, const void *data, size_t n);
uint64_t ls_digest_get (const LsDigest *d);

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
