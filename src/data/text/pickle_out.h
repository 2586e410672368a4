/* data/text/pickle_out.h — objects in Python's pickle format, written front to back.
 *
 *     LsPickleOut w;
 *     ls_pickle_out_begin (&w, file);
 *     ls_pickle_out_begin_object (&w, NULL);
 *     ls_pickle_out_begin_array (&w, "sizes");
 *     ls_pickle_out_int (&w, NULL, 512);
 *     ls_pickle_out_end_array (&w);
 *     ls_pickle_out_end_object (&w);
 *     ls_pickle_out_finish (&w);
 *
 * Protocol 2, with no opcode but those that PyTorch's MemoryViz.js reads. An object is a dictionary; keys are
 * as in json_out.h. Lists are handed over a thousand items at a time, as Python does, since readers keep such
 * a piece on their stack. A text is written once and referred to from then on. Misuse (an end without a
 * begin) aborts. Whether the file could be written is the caller's to ask.
 *
 * Reference: Python, Lib/pickletools.py; PyTorch, torch/utils/viz/MemoryViz.js, unpickle. */
#ifndef LS_DATA_TEXT_PICKLE_OUT_H
#define LS_DATA_TEXT_PICKLE_OUT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LS_PICKLE_MAX_DEPTH 16

typedef struct {
  FILE *file; /* borrowed */
  int depth;
  struct {
    bool is_list;
    uint32_t n; /* items, or keys and values, that are on the stack */
  } open[LS_PICKLE_MAX_DEPTH];
  GHashTable *texts; /* char * -> its number, + 1 */
  uint32_t n_kept;
} LsPickleOut;

void ls_pickle_out_begin (LsPickleOut *w, FILE *file);
void ls_pickle_out_finish (LsPickleOut *w); /* frees what it has, too */

void ls_pickle_out_begin_object (LsPickleOut *w, const char *key);
void ls_pickle_out_end_object (LsPickleOut *w);
void ls_pickle_out_begin_array (LsPickleOut *w, const char *key);
void ls_pickle_out_end_array (LsPickleOut *w);

/* value: not UTF-8: with replacement characters. */
void ls_pickle_out_string (LsPickleOut *w, const char *key, const char *value);
void ls_pickle_out_int (LsPickleOut *w, const char *key, int64_t value);
void ls_pickle_out_double (LsPickleOut *w, const char *key, double value);
void ls_pickle_out_bool (LsPickleOut *w, const char *key, bool value);
/* A tuple of two numbers. */
void ls_pickle_out_pair (LsPickleOut *w, const char *key, int64_t first, int64_t second);

/* The object that was written last, by a number; and that object once more. */
uint32_t ls_pickle_out_keep (LsPickleOut *w);
void ls_pickle_out_again (LsPickleOut *w, const char *key, uint32_t number);

#endif
