/* data/launch/launch_words.h — options with their values, in the order in which they stand: of a command
 * line, of a configuration, or of what a log printed (private to launch/).
 *
 * A name is kept as the file writes it; '_' and '-' are the same where names are compared. Of several options
 * of one name the last holds, so what overrides a configuration is added behind it. */
#ifndef LS_DATA_LAUNCH_LAUNCH_WORDS_H
#define LS_DATA_LAUNCH_LAUNCH_WORDS_H

#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>

#include "base/diag.h"

typedef struct {
  char *written;     /* as the file has it: "--tp_size", "training.seq_len" */
  const char *name;  /* of it, without dashes in front, or another that it stands for                     */
  GPtrArray *values; /* char *; none: it is on                              */
  bool is_default;   /* no file gives it: its program takes it so           */
} LaunchOption;

typedef struct {
  GPtrArray *options;  /* LaunchOption * */
  GHashTable *by_name; /* LaunchOption * that hold */
  GHashTable *off;     /* names that are said to be off: "add_bias_linear ... False"; NULL: by default */
  GPtrArray *others;   /* char *: words in front of the first option */
} LaunchWords;

LaunchWords *launch_words_new (void);
void launch_words_free (LaunchWords *w); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LaunchWords, launch_words_free)

/* "--a", "b", "--c=d": options. */
void launch_words_add (LaunchWords *w, char *const *words, guint n);
/* An option with its one value; NULL: none. An empty list, None, False and null: it is off. */
void launch_words_add_value (LaunchWords *w, const char *name, const char *value);
/* The same; is_said: as a file says, else as its program has it where nothing is said. */
void launch_words_add_by (LaunchWords *w, bool is_said, const char *name, const char *value);

/* A configuration: keys of objects within objects by dots, "training.seq_len". A list of texts and numbers is
 * one option of several values, as on a command line; a list of lists or objects counts its items, "a.0.b".
 * true is an option without a value; false, null, "" and what is empty are off. */
void launch_words_add_tree (LaunchWords *w, const cJSON *tree);
/* The same of JSON as people write it (LS_JSON_BY_HAND); values that a script or a program fills in,
 * "auto" and "$X", are holes. path: for diagnostics. False: with a diagnostic. */
bool launch_words_add_json (LaunchWords *w, const char *text, gsize n, const char *path, LsDiagList *diags);

/* A scalar as text, newly allocated; NULL: it is none. A whole number that a double holds has no point. */
char *launch_scalar_text (const cJSON *node);
/* All options of others, as they hold there. */
void launch_words_add_words (LaunchWords *w, const LaunchWords *others);
/* An option of other words by another name, which is static; it is shown as it is written. */
void launch_words_add_renamed (LaunchWords *w, const char *name, const LaunchOption *option);

/* NULL: it is not there, or off. */
LaunchOption *launch_words_find (const LaunchWords *w, const char *name);
/* Its first value, borrowed; NULL: it is not there, off, or has none. */
const char *launch_words_text (const LaunchWords *w, const char *name);

/* The first of names, with blanks between, that is there, as it is written; NULL: none is, or names NULL. */
const char *launch_words_first (const LaunchWords *w, const char *names);
/* Whether one of names, with blanks between, is there or off; names NULL: none is. */
bool launch_words_has_any (const LaunchWords *w, const char *names);

/* The first word of no option, or where all stand behind options, which take one word each, the second behind
 * one of them. fits: NULL: any does. NULL: there is none. */
const char *launch_words_alone (const LaunchWords *w, bool (*fits) (const char *word));

#endif
