/* data/launch/option_table.h — what options of a program are in our files: one table for each program
 * (private to launch/).
 *
 * A row is the name of an option, and what its value is. Names are written as the program writes them; '_'
 * and '-' are the same where names are compared, and '*' in a row stands for any characters, dots too. A
 * name may have several rows: the first that fits is taken, so exact rows stand before those with '*'. */
#ifndef LS_DATA_LAUNCH_OPTION_TABLE_H
#define LS_DATA_LAUNCH_OPTION_TABLE_H

#include "data/launch/import_reader.h"
#include "data/launch/launch_words.h"

typedef enum {
  OPTION_MODEL,    /* its value is that of a key of the model             */
  OPTION_STRATEGY, /* of the strategy                                     */
  OPTION_SWITCH,   /* is there or not: a key of the strategy, on          */
  OPTION_RULE,     /* means something with others: the reader asks for it */
  OPTION_IGNORED,  /* matters neither to time nor to memory               */
} OptionKind;

typedef struct {
  const char *option; /* without dashes */
  OptionKind kind;
  const char *key; /* of OPTION_RULE what it decides alone, so that another option may take its place, or
                    * NULL; NULL: OPTION_IGNORED */
  /* The release of strategies/software that is the last to have it; NULL: it is there still. Names of
   * releases of one program sort by their age. */
  const char *until;
} OptionRow;

/* A release of a program, and the profile of strategies/software that is its; NULL: none is. */
typedef struct {
  const char *name, *software;
} OptionRelease;

/* The first and the last release that has an option, by their place; what all have is not listed. */
typedef struct {
  const char *option;
  guint first, last;
} OptionSpan;

typedef struct OptionTable {
  const OptionRow *rows; /* of several for one key the first is today's */
  guint n;
  /* Oldest first, of which the last is today's; they end in a NULL. NULL: rows say `until`. */
  const OptionRelease *releases;
  const OptionSpan *spans;
} OptionTable;

/* The parts of a table. */
#define OPTION_DECIDES_ROW(option, key)                                                                      \
  {                                                                                                          \
    option, OPTION_RULE, key, NULL                                                                           \
  }
#define OPTION_MODEL_ROW(option, key)                                                                        \
  {                                                                                                          \
    option, OPTION_MODEL, key, NULL                                                                          \
  }
#define OPTION_STRATEGY_ROW(option, key)                                                                     \
  {                                                                                                          \
    option, OPTION_STRATEGY, key, NULL                                                                       \
  }
#define OPTION_SWITCH_ROW(option, key)                                                                       \
  {                                                                                                          \
    option, OPTION_SWITCH, key, NULL                                                                         \
  }
#define OPTION_RULE_ROW(option)                                                                              \
  {                                                                                                          \
    option, OPTION_RULE, NULL, NULL                                                                          \
  }
#define OPTION_IGNORED_ROW(option)                                                                           \
  {                                                                                                          \
    option, OPTION_IGNORED, NULL, NULL                                                                       \
  }
#define OPTION_OLD_ROW(option, kind, key, until)                                                             \
  {                                                                                                          \
    option, kind, key, until                                                                                 \
  }

/* Of a table whose rules name options of another program. */
#define OPTION_AS_ROW(option, other)                                                                         \
  {                                                                                                          \
    option, OPTION_RULE, other, NULL                                                                         \
  }

/* NULL: the table has none that fits. */
const OptionRow *option_find (const OptionTable *table, const char *name);

/* The option, without dashes, that says a key of a strategy today; NULL: none does by its value alone. */
const char *option_of_strategy (const OptionTable *table, const char *key);

/* --- a job that is read by a table ----------------------------------------------------------------- */

typedef struct {
  LsImport *import;
  const LaunchWords *words;
  const OptionTable *table;
  const char *script; /* "pretrain_gpt.py", NULL: not known */
  guint64 gpus;       /* ranks that are launched; 0: not known */
  bool is_dump;       /* all arguments, as a log has them, not only those given */
  GHashTable *open;   /* keys whose options have values that the file leaves open: static strings */
} LaunchJob;

/* Sets software to the last release that has all options, and says which have: a range, with the options
 * that bound it. Where no release has all, it is the last with the one that went first. A table without
 * releases has the release of the oldest option, or `today`. */
void option_release (LaunchJob *job, const char *today);

/* Reads each option once, and notes it in import->options, as its row says: sets keys of the model and of
 * the strategy; tells what is ignored, what no row fits, and what is left open by a hole. Allocates
 * job->open, which the caller unrefs. */
void option_read_all (LaunchJob *job);

/* For a table whose rules name options of another program of the same value ("*": of the same name): adds
 * them to its words, and tells what is ignored and what no row fits. */
void option_translate (const LaunchJob *job, LaunchWords *to);

/* What rules ask of an option: */
const char *option_text (const LaunchJob *job, const char *name); /* NULL: not given, or with a hole */
bool option_is_on (const LaunchJob *job, const char *name);       /* given, and not false */
bool option_is_off (const LaunchJob *job, const char *name);      /* given as false, or none */
/* Sets a key of the model, as an option of that name would. */
void option_set_model (LaunchJob *job, const char *key, const char *value);
guint64 option_number (const LaunchJob *job, const char *name); /* 0: not given, or no number */

/* Sets a key of the strategy unless it is set, or is left open by the file. */
void option_default (LaunchJob *job, const char *key, const char *value);

#endif
