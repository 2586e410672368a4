/* cli/cli.h — the command line: what stands on it becomes a request, whose answer is printed. */
#ifndef LS_CLI_CLI_H
#define LS_CLI_CLI_H

#include <lockstep/lockstep.h>

/* The command's options, read into the request. argv[0] is its name. On TRUE, *ret_done says that help was
 * asked for and printed. Errors are LS_ERROR_USAGE. */
gboolean cli_parse (int argc, char **argv, const LsCommand *command, LsRequest *request, gboolean *ret_done,
                    GError **error);

/* Does what a request asks for and prints the answer: the result to stdout; to stderr how far it is, notes
 * and warnings. team: as of ls_request_set_team(); NULL: none. */
gboolean cli_answer (const LsCommand *command, LsRequest *request, LsTeam *team, GError **error);

/* What --help prints, newly allocated; topic: of ls_topics(), "all", or NULL. NULL with LS_ERROR_USAGE:
 * there is no such topic. */
char *cli_help_text (const LsCommand *command, const char *topic, GError **error);

/* Writes text to stdout and makes sure that it got there: LS_ERROR_IO. */
gboolean cli_print (const char *text, GError **error);

#define CLI_EXIT_CODES                                                                                       \
  "Exit codes:\n"                                                                                            \
  "  0 ok   1 failed   2 usage   3 bad, missing or unreadable input file\n"                                  \
  "  4 illegal combination, a job that does not fit (--require-fit, train), or\n"                            \
  "    a sweep in which nothing is legal and fits\n"                                                         \
  "  5 outside the tolerance asked for   6 a sweep that was stopped"

#endif
