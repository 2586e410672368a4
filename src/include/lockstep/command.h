/* lockstep/command.h — what can be asked: the commands, and the options of each. Include
 * <lockstep/lockstep.h>. All of it is static. */
#ifndef LOCKSTEP_COMMAND_H
#define LOCKSTEP_COMMAND_H

#include <glib.h>

#include <lockstep/export.h>

G_BEGIN_DECLS

/* Whether a command is about a job: it then takes the knobs of jobs as options too. */
typedef enum {
  LS_JOB_NONE,
  LS_JOB_TAKEN, /* its short help leaves the knobs to `run --help`       */
  LS_JOB_SHOWN, /* its short help has those that most jobs set           */
} LsJobUse;

typedef struct {
  const char *name;     /* "run"                                                        */
  const char *line;     /* what it does, in a line                                      */
  const char *usage;    /* its command lines, without the first "lockstep"              */
  const char *summary;  /* what it does, in some lines                                  */
  const char *examples; /* command lines as one would type them, and what is to be said of them */
  LsJobUse job;
  gboolean can_stop; /* asked to stop, it ends with what it has                        */
} LsCommand;

/* What the value of an option makes the command write. */
typedef enum {
  LS_WRITES_NOTHING,
  LS_WRITES_FILE,    /* any name                                                        */
  LS_WRITES_PICTURE, /* .svg or .png, drawn by gnuplot; .gp: its script, with data in .dat */
  LS_WRITES_NAMED,   /* NAME.json, a file that is found by its name                     */
  LS_WRITES_DRAWING, /* as a picture, but gnuplot is not needed for .svg                */
} LsWrites;

typedef struct {
  const char *key;      /* as files and requests have it: "micro_batch"                 */
  const char *flag;     /* "micro-batch": `--micro-batch`; NULL: `--set micro_batch=N` alone */
  const char *topic;    /* of ls_topics(): a knob of a job; NULL: the command's own     */
  const char *argument; /* what stands for its value: "N", "SIZE"; NULL: a switch, "1" or "0" */
  const char *choices;  /* "none, ddp": all of its values; NULL: others                 */
  const char *usually;  /* what holds without it, in words; "": nothing                 */
  const char *meaning;
  char letter;            /* 'j': `-j`; 0: none                                         */
  gboolean is_usual;      /* one of the knobs that most jobs set                        */
  gboolean is_repeated;   /* it may be set several times: all values count              */
  gboolean is_positional; /* on a command line its values stand alone, without a flag   */
  gboolean is_rare;       /* of the command's own: the short help of a job leaves it out */
  gboolean takes_json;    /* its value may be the JSON of a file itself: it begins with '{' */
  LsWrites writes;
} LsOption;

typedef struct {
  const char *name, *title; /* "batch"; as a heading */
} LsTopic;

/* All commands; ends in NULL. */
LS_PUBLIC const LsCommand *const *ls_commands (void);
/* NULL, with LS_ERROR_USAGE: there is none of that name. */
LS_PUBLIC const LsCommand *ls_command_find (const char *name, GError **error);
/* Its own options, then those of a job that it takes, by topic. */
LS_PUBLIC const LsOption *ls_command_options (const LsCommand *command, guint *ret_n);
LS_PUBLIC const LsTopic *ls_topics (guint *ret_n);

/* The word of a NULL-terminated list that was probably meant by what was typed; NULL: none is near.
 * Borrowed. */
LS_PUBLIC const char *ls_nearest_word (const char *typed, const char *const *words);

G_END_DECLS

#endif
