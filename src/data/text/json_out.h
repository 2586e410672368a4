/* data/text/json_out.h — JSON written front to back into a GString, or through one into a file.
 *
 *     LsJsonOut w;
 *     ls_json_out_init (&w, text, 2);
 *     ls_json_out_begin_object (&w, NULL);
 *     ls_json_out_double (&w, "step_time_s", 13.75);
 *     ls_json_out_end_object (&w);
 *
 * key names a member of an object and is NULL in arrays and at the top. Doubles
 * read back as the same double ("%.17g", whatever the locale); NaN and infinities
 * become null. Misuse (an end without a begin, a key in an array) aborts. */
#ifndef LS_DATA_TEXT_JSON_OUT_H
#define LS_DATA_TEXT_JSON_OUT_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LS_JSON_OUT_MAX_DEPTH 64

typedef struct {
  GString *text; /* borrowed */
  FILE *
      file; /* takes the text whenever there is much of it; NULL: nobody. The rest is the caller's to write */
  int indent; /* blanks per level; 0: all on one line; what is set within an object or a list ends with it */
  int depth;
  char closer[LS_JSON_OUT_MAX_DEPTH];
  int outer_indent[LS_JSON_OUT_MAX_DEPTH];
  bool has_items[LS_JSON_OUT_MAX_DEPTH];
} LsJsonOut;

void ls_json_out_init (LsJsonOut *w, GString *text, int indent);

/* A whole file: an object with two blanks per level, in a text of its own; what closes it gives that text
 * with a line break at its end, newly allocated. */
void ls_json_out_open (LsJsonOut *w);
/* The same with "schema" first: "lockstep.<kind>/1". */
void ls_json_out_open_as (LsJsonOut *w, const char *kind);
/* That member alone. */
void ls_json_out_schema (LsJsonOut *w, const char *kind);
char *ls_json_out_close (LsJsonOut *w);

void ls_json_out_begin_object (LsJsonOut *w, const char *key);
void ls_json_out_end_object (LsJsonOut *w);
void ls_json_out_begin_array (LsJsonOut *w, const char *key);
void ls_json_out_end_array (LsJsonOut *w);

void ls_json_out_string (LsJsonOut *w, const char *key, const char *value); /* UTF-8; NULL gives null */
void ls_json_out_double (LsJsonOut *w, const char *key, double value);
void ls_json_out_int (LsJsonOut *w, const char *key, int64_t value);
void ls_json_out_uint (LsJsonOut *w, const char *key, uint64_t value);
void ls_json_out_bool (LsJsonOut *w, const char *key, bool value);
void ls_json_out_null (LsJsonOut *w, const char *key);

/* A value of a document, or a list of values, on one line. */
void ls_json_out_node (LsJsonOut *w, const char *key, const cJSON *node);

/* A text with its quotes and escapes; NULL gives null. Newly allocated. */
char *ls_json_string (const char *value);

#endif
