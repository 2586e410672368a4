/* Pins: the digest values themselves (published FNV-1a test vectors), so that
 * digests of runs stay comparable across versions and machines. */
#include "ls_test.h"

#include <string.h>

#include "base/digest.h"

static uint64_t
digest_of (const char *text)
{
  LsDigest d;
  ls_digest_init (&d);
  ls_digest_bytes (&d, text, strlen (text));
  return ls_digest_get (&d);
}

/* http://www.isthe.com/chongo/src/fnv/test_fnv.c, fnv1a_64_vector */
static void
known_vectors (void)
{
  LS_CHECK (digest_of ("") == UINT64_C (0xcbf29ce484222325));
  LS_CHECK (digest_of ("a") == UINT64_C (0xaf63dc4c8601ec8c));
  LS_CHECK (digest_of ("foobar") == UINT64_C (0x85944171f73967e8));
}

static void
words_are_little_endian_bytes (void)
{
  LsDigest word, bytes;
  ls_digest_init (&word);
  ls_digest_init (&bytes);
  ls_digest_u64 (&word, UINT64_C (0x0807060504030201));
  ls_digest_bytes (&bytes, "\1\2\3\4\5\6\7\10", 8);
  LS_CHECK (ls_digest_get (&word) == ls_digest_get (&bytes));
}

static void
order_matters (void)
{
  LsDigest ab, ba;
  ls_digest_init (&ab);
  ls_digest_init (&ba);
  ls_digest_u64 (&ab, 1);
  ls_digest_u64 (&ab, 2);
  ls_digest_u64 (&ba, 2);
  ls_digest_u64 (&ba, 1);
  LS_CHECK (ls_digest_get (&ab) != ls_digest_get (&ba));
}

LS_TEST_SUITE (LS_TEST (known_vectors), LS_TEST (words_are_little_endian_bytes), LS_TEST (order_matters))
