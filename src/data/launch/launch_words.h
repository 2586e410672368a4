/* data/launch/launch_words.h — options with their values, in the order in which they stand: of a command
 * line, or of what a log printed (private to launch/). */
#ifndef LS_DATA_LAUNCH_LAUNCH_WORDS_H
#define LS_DATA_LAUNCH_LAUNCH_WORDS_H

#include <glib.h>
#include <stdbool.h>

typedef struct {
  char *name;        /* without its dashes, '-' for '_' */
  GPtrArray *values; /* char * */
  bool is_used;
} LaunchOption;

typedef struct {
  GPtrArray *options; /* LaunchOption * */
  GHashTable *by_name;
  GHashTable *off;   /* names that are said to be off: "add_bias_linear ... False" */
  GPtrArray *others; /* char *: words in front of the first option */
} LaunchWords;

LaunchWords *launch_words_new (void);
void launch_words_free (LaunchWords *w); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LaunchWords, launch_words_free)

/* "--a", "b", "--c=d": options. */
void launch_words_add (LaunchWords *w, char *const *words, guint n);
/* An option with its one value; NULL: none. An empty list, None, False and null: it is off. */
void launch_words_add_value (LaunchWords *w, const char *name, const char *value);

/* Of several the last; NULL: it is not there. */
LaunchOption *launch_words_find (const LaunchWords *w, const char *name);

#endif
