/* cli/cli.h — what the subcommands share. One cmd_*.c each, one line in the table
 * of main.c. They print results to stdout through cli_print() and return errors;
 * main prints those, once. */
#ifndef LS_CLI_CLI_H
#define LS_CLI_CLI_H

#include <lockstep/lockstep.h>

/* argv[0] is the name of the subcommand. */
gboolean cli_run (int argc, char **argv, GError **error);
gboolean cli_collective (int argc, char **argv, GError **error);
gboolean cli_compare (int argc, char **argv, GError **error);
gboolean cli_calibrate (int argc, char **argv, GError **error);
gboolean cli_kernel (int argc, char **argv, GError **error);
gboolean cli_list (int argc, char **argv, GError **error);
gboolean cli_memory (int argc, char **argv, GError **error);
gboolean cli_check (int argc, char **argv, GError **error);
gboolean cli_schedule (int argc, char **argv, GError **error);
gboolean cli_sweep (int argc, char **argv, GError **error);
gboolean cli_topology (int argc, char **argv, GError **error);
gboolean cli_trace (int argc, char **argv, GError **error);
gboolean cli_validate (int argc, char **argv, GError **error);
gboolean cli_whatif (int argc, char **argv, GError **error);

/* Writes text to stdout and makes sure that it got there: LS_ERROR_IO. */
gboolean cli_print (const char *text, GError **error);
/* Talk, to stderr: "warning: ...". */
void cli_warn (const char *message);
/* "note: ..." for each line of text. */
void cli_note (const char *text);
/* A limit of --flag in percent, from 0 to most; without text *pct stays as it is. LS_ERROR_USAGE. */
gboolean cli_parse_percent (const char *flag, const char *text, double most, double *pct, GError **error);
/* Not fitting is a result: a warning, with a note behind it unless that is NULL; an error only
 * where fitting is required. */
gboolean cli_report_fit (const LsResult *result, gboolean is_required, const char *note, GError **error);

/* Whether a subcommand takes the options that say which job, and its short help has the usual ones. */
typedef enum { CLI_NO_JOB, CLI_JOB_TAKEN, CLI_JOB_SHOWN } CliJobHelp;

/* How a subcommand presents itself. */
typedef struct {
  const char *usage;       /* "list [KIND]": after "lockstep "             */
  const char *summary;     /* above the options                            */
  const char *description; /* below: examples, exit codes                  */
  CliJobHelp job;
  const GOptionEntry *entries; /* set by cli_parse(); those of a job are hidden */
} CliHelp;

/* Parses options by GOption, with -h and --help [TOPIC] added to entries; group_data is
 * handed to callback entries. On TRUE, *ret_done says that help was asked for and
 * printed. Errors are LS_ERROR_USAGE. */
gboolean cli_parse (int *argc, char ***argv, const CliHelp *help, const GOptionEntry *entries,
                    gpointer group_data, gboolean *ret_done, GError **error);

/* What --help prints, newly allocated; topic: of ls_knob_topics(), "all", or NULL. NULL with LS_ERROR_USAGE:
 * there is no such topic. */
char *cli_help_text (const CliHelp *help, const char *topic, GError **error);

#define CLI_EXIT_CODES                                                                                       \
  "Exit codes:\n"                                                                                            \
  "  0 ok   1 failed   2 usage   3 bad, missing or unreadable input file\n"                                  \
  "  4 illegal combination, --require-fit and it does not fit, or a sweep\n"                                 \
  "    in which nothing is legal and fits\n"                                                                 \
  "  5 outside the tolerance asked for   6 a sweep that was stopped"

#endif
