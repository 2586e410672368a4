/* data/launch/option_table.h — what options of a program are in our files: one table for each program
 * (private to launch/).
 *
 * A row is the name of an option, and what its value is. It serves both directions: a job is read by it
 * (option_read_all) and written by it (option_write), in the order of rows. Names are written as the program
 * writes them; '_' and '-' are the same where names are compared, and '*' in a row stands for any characters,
 * dots too. A name may have several rows: the first that fits is taken, so exact rows stand before those with
 * '*'. */
#ifndef LS_DATA_LAUNCH_OPTION_TABLE_H
#define LS_DATA_LAUNCH_OPTION_TABLE_H

#include "data/launch/import_reader.h"
#include "data/launch/launch_words.h"

typedef enum {
  OPTION_MODEL,    /* its value is that of a key of the model             */
  OPTION_STRATEGY, /* of the strategy                                     */
  OPTION_RULE,     /* means something with others: the reader asks for it */
  OPTION_PACKS,    /* sequences are of several documents, whose lengths no option says: where it is on, or
                    * has the value `on` */
  OPTION_IGNORED,  /* matters neither to time nor to memory               */
} OptionKind;

/* A value as the program spells it, and as our files do. */
typedef struct {
  const char *theirs, *ours; /* NULL ends a list; of several for one of ours the first is written */
} OptionWord;

typedef struct {
  const char *option; /* without dashes */
  OptionKind kind;
  const char *key; /* of OPTION_RULE what it decides alone, so that another option may take its place, or
                    * NULL; NULL: OPTION_IGNORED */
  /* The release of strategies/software that is the last to have it; NULL: it is there still. Names of
   * releases of one program sort by their age. */
  const char *until;

  /* Of a key, in both directions; NULL, false: none of it. */
  const char *on;          /* a switch: it is there where the key has this value, "true"              */
  const char *off;         /* written of a switch that is not on; NULL: nothing                         */
  const OptionWord *words; /* its values; another one is told, and not set                              */
  const char *otherwise;   /* of option_set_defaults(), if it is heeded                                  */
  const char *none;        /* its value for a key that is not there; so is 0                            */
  const char *with;        /* heeded and written with that option only; a number there is above 1. "!x":
                            * without it */
  bool is_count;           /* of the strategy, "5e8" too; what is below the least of the key is that */

  /* In writing only. */
  /* Expressions: of any kind, in place of the key's, "": it is on; where it is written, a rule without
   * `write` as on. NULL: a rule is not written; always. */
  const char *write, *only;
  bool joins;         /* on the line of the option before                                               */
  const char *remark; /* behind it, where there are comments                                            */
} OptionRow;

typedef struct OptionTable {
  const OptionRow *rows; /* of several for one key the first is today's, which is written */
  guint n;
  const struct ProgramMap *map; /* that has it, of which rows have expressions; NULL: it is in C */
} OptionTable;

/* Whether a row of that name, which ends at a blank too, is for an option; whether one of several is, with
 * blanks between. */
bool option_fits (const char *pattern, const char *name);
bool option_is_listed (const char *names, const char *name);
/* Whether it is one of a key with a value, and no switch; NULL: it is not. */
static inline bool
option_is_valued (const OptionRow *row)
{
  return row && row->kind <= OPTION_STRATEGY && !row->on;
}

/* NULL: the table has none that fits. */
const OptionRow *option_find (const OptionTable *table, const char *name);

/* --- a job that is written by a table: option_write.c ---------------------------------------------- */

typedef enum {
  OPTION_ARGUMENTS, /* "  --a b", a line each */
  OPTION_TOML,      /* "[section]", "a = b"   */
  OPTION_JSON,      /* objects within objects  */
} OptionSyntax;

/* The value of a row in a job, newly allocated, "": it is on; NULL: it is not written. */
char *option_value (const OptionTable *table, const OptionRow *row, const LsModel *m, const LsStrategy *s);

/* Appends all options of a resolved job that have a value. */
void option_write (const OptionTable *table, OptionSyntax syntax, const LsModel *m, const LsStrategy *s,
                   GString *out);

/* --- a job that is read by a table ----------------------------------------------------------------- */

typedef struct {
  LsImport *import;
  const LaunchWords *words;
  const OptionTable *table;
  const char *script;    /* "pretrain_gpt.py", NULL: not known */
  guint64 gpus;          /* ranks that are launched; 0: not known */
  GHashTable *variables; /* char * -> char *: what its script sets; NULL: there is none */
  GHashTable *exported;  /* names of those that processes see; NULL: it is not asked */
  bool is_part;          /* another file says more of the model: what is not given is not its default */
  bool is_dump;          /* all arguments, as a log has them, not only those given */
  GHashTable *open;      /* keys whose options have values that the file leaves open: static strings */
} LaunchJob;

/* Reads each option once, and notes it in the remarks, as its row says: sets keys of the model and of
 * the strategy; tells what is ignored, what no row fits, and what is left open by a hole. Allocates
 * job->open, which the caller unrefs. */
void option_read_all (LaunchJob *job);
/* Of a word beside options: what it leaves open, which may be options. */
void option_tell_hole (const LaunchJob *job, const char *word);

/* Behind it, where the options are all that the program is told: sets what rows of the model, or of the
 * strategy, say `otherwise`. */
void option_set_defaults (LaunchJob *job, OptionKind kind);

/* For a table whose rules name options of another program of the same value ("*": of the same name): adds
 * them to its words, and tells what is ignored and what no row fits. */
void option_translate (const LaunchJob *job, LaunchWords *to);

/* What rules ask of an option: */
const char *option_text (const LaunchJob *job, const char *name); /* NULL: not given, or with a hole */
bool option_is_there (const LaunchJob *job, const char *name);    /* given, and not as false or none */
bool option_is_none (const LaunchJob *job, const char *name);     /* given as false or none */
/* Of a switch: on without a value, or with true, yes, on or a number but 0; off with false, no, off, none or
 * 0. Another text is told, and neither. */
typedef enum { OPTION_NEITHER, OPTION_OFF, OPTION_ON } OptionSwitch;
OptionSwitch option_switch (const LaunchJob *job, const char *name);
guint64 option_number (const LaunchJob *job, const char *name); /* 0: not given, or no number */

#endif
