/* Pins: the distance, and which mistakes get a suggestion and which none. */
#include "ls_test.h"

#include <string.h>

#include "base/suggest.h"

static void
distances (void)
{
  LS_CHECK_INT (ls_edit_distance ("", ""), ==, 0);
  LS_CHECK_INT (ls_edit_distance ("", "abc"), ==, 3);
  LS_CHECK_INT (ls_edit_distance ("abc", ""), ==, 3);
  LS_CHECK_INT (ls_edit_distance ("kitten", "sitting"), ==, 3);
  LS_CHECK_INT (ls_edit_distance ("hidden", "hiddne"), ==, 1); /* one swap */
  LS_CHECK_INT (ls_edit_distance ("pt", "tp"), ==, 1);
  LS_CHECK_INT (ls_edit_distance ("HBM", "hbm"), ==, 0);
  LS_CHECK_INT (ls_edit_distance ("ca", "abc"), ==, 3); /* restricted: no edit inside a swap */
}

static void
near_words_are_suggested (void)
{
  static const char *const words[] = { "hidden", "heads", "kv_heads", "layers", "tp", NULL };
  LS_CHECK_STR (ls_suggest ("hiden", words), "hidden");
  LS_CHECK_STR (ls_suggest ("haeds", words), "heads");
  LS_CHECK_STR (ls_suggest ("kvheads", words), "kv_heads");
  LS_CHECK_STR (ls_suggest ("tpp", words), "tp");
  LS_CHECK_STR (ls_suggest ("lay", words), "layers"); /* a beginning */
}

static void
far_words_are_not (void)
{
  static const char *const words[] = { "hidden", "tp", NULL };
  LS_CHECK_STR (ls_suggest ("banana", words), NULL);
  LS_CHECK_STR (ls_suggest ("", words), NULL);
  LS_CHECK_STR (ls_suggest ("xy", words), NULL);
  g_autofree char *huge = g_strnfill (1 << 20, 'h');
  LS_CHECK_STR (ls_suggest (huge, words), NULL);
}

/* "dgx-h100" is one change away from "dgx-a100" and the other word four, but who
 * typed the beginning of a name meant that name. */
static void
a_beginning_beats_what_is_nearer (void)
{
  static const char *const words[] = { "dgx-h100", "dgx-a100-80g-ib", "dgx-a100-80g", NULL };
  LS_CHECK_STR (ls_suggest ("dgx-a100", words), "dgx-a100-80g");
  LS_CHECK_STR (ls_suggest ("dgx-a10-80g", words), "dgx-a100-80g");
}

static void
a_word_between_dashes_is_a_beginning_too (void)
{
  static const char *const words[] = { "h100-80g-ib800", "xla-fsdp", "fsdp1", "dgx-h100", NULL };
  LS_CHECK_STR (ls_suggest ("h100", words), "dgx-h100");
  LS_CHECK_STR (ls_suggest ("fsdp", words), "fsdp1");
}

static void
the_first_of_equals_wins (void)
{
  static const char *const words[] = { "a100-40g", "a100-80g", NULL };
  LS_CHECK_STR (ls_suggest ("a100-60g", words), "a100-40g");
}

LS_TEST_SUITE (LS_TEST (distances), LS_TEST (near_words_are_suggested), LS_TEST (far_words_are_not),
               LS_TEST (a_beginning_beats_what_is_nearer), LS_TEST (a_word_between_dashes_is_a_beginning_too),
               LS_TEST (the_first_of_equals_wins))
