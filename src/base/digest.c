#include "base/digest.h"

void
ls_digest_init (LsDigest *d)
{
  d->state = LS_FNV_BASIS;
}

void
ls_digest_bytes (LsDigest *d, const void *data, size_t n)
{
  const uint8_t *byte = data;
  for (size_t i = 0; i < n; i++)
    ls_digest_byte (d, byte[i]);
}

uint64_t
ls_digest_get (const LsDigest *d)
{
  return d->state;
}

unsigned
ls_hash_bytes (const void *key, size_t n)
{
  const unsigned char *bytes = key;
  uint64_t h = n;
  for (size_t at = 0; at < n; at += sizeof (uint64_t)) {
    uint64_t word = 0;
    memcpy (&word, bytes + at, n - at < sizeof word ? n - at : sizeof word);
    h = ls_sig_mix (h ^ word);
  }
  return (unsigned) h;
}

unsigned
ls_sig_hash (const void *key)
{
  return (unsigned) ((const LsSig *) key)->a;
}

int
ls_sig_is_same (const void *a, const void *b)
{
  return memcmp (a, b, sizeof (LsSig)) == 0;
}

void
ls_sig_add_double (LsSig *sig, double value)
{
  uint64_t bits;
  memcpy (&bits, &value, sizeof bits);
  ls_sig_add (sig, bits);
}
