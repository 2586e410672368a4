/* Pins the bytes of a pickle: numbers of each width, texts that come again, long lists in pieces. That Python
 * reads them is pinned by golden/memory.txt. */
#include "ls_test.h"

#include <string.h>

#include "data/text/pickle_out.h"

static void
check_bytes (char *text, size_t n, const char *expected, size_t n_expected)
{
  LS_CHECK_INT (n, ==, n_expected);
  LS_CHECK (n == n_expected && memcmp (text, expected, n) == 0);
  free (text);
}

#define BYTES(text) text, sizeof text - 1

static void
each_number_takes_its_width (void)
{
  char *text;
  size_t n;
  FILE *f = open_memstream (&text, &n);
  LsPickleOut w;
  ls_pickle_out_begin (&w, f);
  ls_pickle_out_begin_list (&w);
  static const int64_t numbers[] = { 0, 255, 256, 65535, 65536, -1, INT64_C (1) << 46 };
  for (size_t i = 0; i < G_N_ELEMENTS (numbers); i++)
    ls_pickle_out_int (&w, numbers[i]);
  ls_pickle_out_bool (&w, true);
  ls_pickle_out_double (&w, 1);
  ls_pickle_out_pair (&w, 0, 0);
  ls_pickle_out_end (&w);
  ls_pickle_out_finish (&w);
  fclose (f);
  check_bytes (text, n,
               BYTES ("\x80\x02](K\x00K\xffM\x00\x01M\xff\xffJ\x00\x00\x01\x00J\xff\xff\xff\xff"
                      "\x8a\x08\x00\x00\x00\x00\x00\x40\x00\x00\x88G\x3f\xf0\x00\x00\x00\x00\x00\x00"
                      "K\x00K\x00\x86"
                      "e."));
}

/* A text and an object that was kept are written once; what is no UTF-8 can still be read. */
static void
what_is_there_is_referred_to (void)
{
  char *text;
  size_t n;
  FILE *f = open_memstream (&text, &n);
  LsPickleOut w;
  ls_pickle_out_begin (&w, f);
  ls_pickle_out_begin_dict (&w);
  ls_pickle_out_text (&w, "a");
  ls_pickle_out_begin_list (&w);
  ls_pickle_out_end (&w);
  uint32_t list = ls_pickle_out_keep (&w);
  ls_pickle_out_text (&w, "\xff");
  ls_pickle_out_again (&w, list);
  ls_pickle_out_text (&w, "b");
  ls_pickle_out_text (&w, "a");
  ls_pickle_out_end (&w);
  ls_pickle_out_finish (&w);
  fclose (f);
  check_bytes (text, n,
               BYTES ("\x80\x02}(X\x01\x00\x00\x00"
                      "aq\x00](eq\x01X\x03\x00\x00\x00\xef\xbf\xbdq\x02h\x01X\x01\x00\x00\x00"
                      "bq\x03h\x00u."));
}

/* A reader holds at most a thousand items that are in no list yet. */
static void
long_lists_come_in_pieces (void)
{
  char *text;
  size_t n;
  FILE *f = open_memstream (&text, &n);
  LsPickleOut w;
  ls_pickle_out_begin (&w, f);
  ls_pickle_out_begin_list (&w);
  for (int i = 0; i < 2500; i++)
    ls_pickle_out_bool (&w, true);
  ls_pickle_out_end (&w);
  ls_pickle_out_finish (&w);
  fclose (f);
  LS_CHECK_INT (n, ==, 2 + 1 + 3 * 2 + 2500 + 1);
  LS_CHECK (text[4 + 1000] == 'e' && text[5 + 1000] == '(' && text[n - 2] == 'e');
  free (text);
}

LS_TEST_SUITE (LS_TEST (each_number_takes_its_width), LS_TEST (what_is_there_is_referred_to),
               LS_TEST (long_lists_come_in_pieces))
