/* tests/fuzz/mutate.h — text with some of its bytes, or of its values, changed at random. */
#ifndef LS_TESTS_MUTATE_H
#define LS_TESTS_MUTATE_H

#include <glib.h>

static inline gsize
mutate_place (GRand *rand, gsize n)
{
  return n ? g_rand_int (rand) % n : 0;
}

/* A byte is replaced, taken out, put in, a stretch is dropped, doubled or swapped, the rest cut off. */
static inline void
mutate_byte (GRand *rand, GByteArray *b)
{
  static const char likely[] = "0123456789\"{}[],:.-+eE \\/\n\t";
  gsize at = mutate_place (rand, b->len), length = 1 + mutate_place (rand, MIN (40, b->len - at));
  guint8 byte = g_rand_boolean (rand) ? (guint8) likely[mutate_place (rand, sizeof likely)]
                                      : (guint8) g_rand_int (rand);
  if (b->len == 0) {
    g_byte_array_append (b, &byte, 1);
    return;
  }
  length = MIN (length, b->len - at);
  switch (g_rand_int_range (rand, 0, 7)) {
  case 0:
  case 1:
    b->data[at] = byte;
    break;
  case 2:
    b->data[at] ^= (guint8) (1u << g_rand_int_range (rand, 0, 8));
    break;
  case 3:
    g_byte_array_remove_range (b, (guint) at, (guint) length);
    break;
  case 4: {
    g_autofree guint8 *copy = g_memdup2 (b->data + at, length);
    g_byte_array_append (b, copy, (guint) length);
    break;
  }
  case 5: {
    gsize other = mutate_place (rand, b->len);
    guint8 kept = b->data[at];
    b->data[at] = b->data[other];
    b->data[other] = kept;
    break;
  }
  default:
    if (g_rand_int_range (rand, 0, 4) == 0)
      g_byte_array_set_size (b, (guint) at);
    else
      b->data[at] = byte;
  }
}

static inline GByteArray *
mutate_bytes (const char *text, gsize n, guint32 seed)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);
  GByteArray *b = g_byte_array_new ();
  g_byte_array_append (b, (const guint8 *) text, (guint) n);
  for (gint i = g_rand_int_range (rand, 1, 4); i > 0; i--)
    mutate_byte (rand, b);
  return b;
}

/* A number as users write it: mostly small, at times one that nothing should take. */
static inline const char *
mutate_number (GRand *rand)
{
  static const char *const usual[]
      = { "1", "2", "3", "4", "5", "6", "7", "8", "12", "16", "24", "64", "128" },
      *const strange[] = { "0",          "0.5",        "-1",
                           "4096",       "65536",      "1048576",
                           "2147483648", "4294967295", "1e-9",
                           "1e300",      "1e999",      "4294967296",
                           "1073741825", "9223372036", "18446744073709551615",
                           "1e-320",     "00002",      "1048577",
                           "nan",        "99999",      "1024",
                           "33",         "0x10",       "" };
  return g_rand_int_range (rand, 0, 4) > 0 ? usual[mutate_place (rand, G_N_ELEMENTS (usual))]
                                           : strange[mutate_place (rand, G_N_ELEMENTS (strange))];
}

/* One number of the text is another, or one of its lines is gone or there twice. */
static inline void
mutate_value (GRand *rand, GString *text)
{
  gsize at = mutate_place (rand, text->len), end;
  bool is_line = g_rand_int_range (rand, 0, 4) == 0;
  while (at < text->len && (is_line ? text->str[at] != '\n' : !g_ascii_isdigit (text->str[at])))
    at++;
  while (!is_line && at > 0 && g_ascii_isdigit (text->str[at - 1]))
    at--;
  end = at + (is_line && at < text->len);
  while (end < text->len && (is_line ? text->str[end] != '\n' : g_ascii_isdigit (text->str[end])))
    end++;
  g_autofree char *line = g_strndup (text->str + at, end - at);
  if (!is_line || g_rand_boolean (rand))
    g_string_erase (text, (gssize) at, (gssize) (end - at));
  g_string_insert (text, (gssize) at, is_line ? g_rand_boolean (rand) ? line : "" : mutate_number (rand));
}

#endif
