/* base/suggest.h — "did you mean": the known word nearest to a mistyped one. */
#ifndef LS_BASE_SUGGEST_H
#define LS_BASE_SUGGEST_H

#include <glib.h>
#include <stddef.h>

/* Insertions, deletions, substitutions and swaps of neighbouring characters that
 * turn a into b, case ignored, each pair swapped at most once (optimal string
 * alignment; R. Lowrance and R. A. Wagner, JACM 22(2), 1975, restricted).
 * O(strlen (a) * strlen (b)). */
size_t ls_edit_distance (const char *a, const char *b);

/* The word that was probably meant, borrowed from the NULL-terminated list: the shortest one that continues
 * what was typed ("llama3" for "llama3-8b") or has it between dashes ("h100" for "dgx-h100"), but not one
 * that goes on a number where another does not ("gpt-3" for "gpt3-175b", not "gpt-3.6b"); else the nearest
 * one; the first of equals; else the longest of which the typed one is a continuation ("micro_batch_size" for
 * "micro_batch"); else the one whose beginning, up to a dash or a number, is nearest ("mixtrl" for
 * "mixtral-8x7b"). NULL if none is near: more than a third of its characters would change, a quarter of a
 * beginning. */
const char *ls_suggest (const char *typed, const char *const *words);

/* `; did you mean "random:SEED"?`, to be put behind a complaint; "" if nothing is near. Newly allocated.
 * words: NULL-terminated; of one with a value ("random:SEED", "rank=N:FACTOR") what stands before the ':' or
 * '=' is the word. typed: such texts with commas between; the first that is no word is answered. */
char *ls_did_you_mean (const char *typed, const char *const *words);

/* Sets *error, LS_ERROR_USAGE: none of the words was typed for that flag. Returns FALSE. */
gboolean ls_fail_word (GError **error, const char *flag, const char *typed, const char *const *words);

#endif
