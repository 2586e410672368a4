/* lockstep/request.h — ask and be answered: a command, keys and values; one answer. Include
 * <lockstep/lockstep.h>. */
#ifndef LOCKSTEP_REQUEST_H
#define LOCKSTEP_REQUEST_H

#include <stdio.h>

#include <lockstep/command.h>

G_BEGIN_DECLS

/* ---- Requests -------------------------------------------------------------- */

typedef struct LsRequest LsRequest;

/* command: the name of one of ls_commands(); LS_ERROR_USAGE: there is none. Free with ls_request_free(). */
LS_PUBLIC LsRequest *ls_request_new (const char *command, GError **error);
LS_PUBLIC void ls_request_free (LsRequest *request); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsRequest, ls_request_free)

/* Sets an option of the command from text as the command line takes it. key: of ls_command_options(), with
 * dashes or underscores. value: NULL switches on. Of several values the last counts, unless the option is
 * repeated. "for", "software" and "strategy" are read before all other knobs of a job, whatever the order.
 * LS_ERROR_USAGE: no such option, a switch that is neither "1" nor "0"; other values are read when it
 * runs. */
LS_PUBLIC gboolean ls_request_set (LsRequest *request, const char *key, const char *value, GError **error);

/* Reference implementations in place of the fast ones, as LS_DEBUG selects them ("evq=ref,solver=ref");
 * commands that do not simulate take no notice. NULL: none. */
LS_PUBLIC void ls_request_set_debug (LsRequest *request, const char *text);

/* Told what a long command has done: n_done simulations of at most n_to_do, which is 0 where nobody can tell.
 * Called from any thread, one call at a time. */
typedef void (*LsProgressFunc) (guint64 n_done, guint64 n_to_do, gpointer data);
LS_PUBLIC void ls_request_set_progress (LsRequest *request, LsProgressFunc progress, gpointer data);

/* Told of a sweep whenever a configuration is known, to be legal and to fit, that is better than all before
 * it: the time of its step and its degrees in words ("tp 8 + sp, pp 8 x 3 chunks, ..."), which are borrowed.
 * Of several numbers of GPUs or global batches each has its own. Called from the thread that runs the
 * request. NULL: nobody is. */
typedef void (*LsBestFunc) (double step_s, const char *what, gpointer data);
LS_PUBLIC void ls_request_set_best (LsRequest *request, LsBestFunc best, gpointer data);

/* stop: may become 1 at any time, by a signal handler too, and ends a sweep with what it has. Borrowed, to
 * the end of the run. */
LS_PUBLIC void ls_request_set_stop (LsRequest *request, const gint *stop);

/* Processes that mpirun started with one command line, to do one piece of work together. The first, of rank
 * 0, leads: it alone has results and writes files. All must join before they do anything that may fail, and
 * leave at the end, with the error if there was one: so the leader gets it, and nobody waits for who is not
 * there. Without mpirun it is one process. */
typedef struct LsTeam LsTeam;
/* LS_ERROR_UNSUPPORTED: this Lockstep is without MPI. */
LS_PUBLIC LsTeam *ls_team_join (GError **error);
LS_PUBLIC guint ls_team_rank (const LsTeam *team);
LS_PUBLIC void ls_team_leave (LsTeam *team, const GError *error); /* frees it; NULL allowed */
/* Of sweep, validate or train. Borrowed, to the end of the run. */
LS_PUBLIC void ls_request_set_team (LsRequest *request, LsTeam *team);

/* ---- Answers --------------------------------------------------------------- */

typedef struct LsAnswer LsAnswer;

/* Does what the command does, and writes the files that options name. That files can be written is made sure
 * before. NULL: there is no answer. LS_ERROR_USAGE: an option is missing or its value malformed, or two
 * exclude each other; LS_ERROR_INPUT: a file; LS_ERROR_IO; LS_ERROR_CONFLICT, LS_ERROR_UNSUPPORTED,
 * LS_ERROR_LIMIT, LS_ERROR_DEADLOCK. A request may run several times, and be changed in between. Free with
 * ls_answer_free(). */
LS_PUBLIC LsAnswer *ls_request_run (const LsRequest *request, GError **error);
LS_PUBLIC void ls_answer_free (LsAnswer *answer); /* NULL allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (LsAnswer, ls_answer_free)

typedef enum { LS_FORM_TEXT, LS_FORM_JSON, LS_FORM_CSV, LS_FORM_MARKDOWN } LsForm;

/* What a text for people may use. All zero: ASCII and block characters, no colour, 120 columns. */
typedef struct {
  gboolean has_color; /* ANSI escapes                                            */
  gboolean is_ascii;  /* no block characters: the terminal does not show UTF-8   */
  guint width;        /* columns; 0: 120                                         */
} LsTextStyle;

/* The form that the request asks for: with "json", "csv" or "format" that, else text. */
LS_PUBLIC LsForm ls_answer_form (const LsAnswer *answer);
/* The answer in a form. style: of text; NULL: plain. Newly allocated; NULL: it has none in that form. The
 * same answer gives the same bytes. */
LS_PUBLIC char *ls_answer_format (const LsAnswer *answer, LsForm form, const LsTextStyle *style);
/* The same to a file as it is made, as it may be gigabytes. LS_ERROR_USAGE: it has none in that form;
 * LS_ERROR_IO. */
LS_PUBLIC gboolean ls_answer_print (const LsAnswer *answer, LsForm form, const LsTextStyle *style, FILE *out,
                                    GError **error);

/* The page that "report" writes: HTML, which needs no network. Newly allocated. NULL with LS_ERROR_USAGE:
 * there is no result. */
LS_PUBLIC char *ls_answer_page (const LsAnswer *answer, GError **error);

/* What had to be assumed, options that make no difference, and what else is worth knowing: a line each;
 * "" if nothing. Newly allocated. */
LS_PUBLIC char *ls_answer_notes (const LsAnswer *answer);
/* What is wrong with the result though it is one, as a job that does not fit: a line, and behind it lines on
 * what helps; "" if nothing. Newly allocated. */
LS_PUBLIC char *ls_answer_warning (const LsAnswer *answer);
/* FALSE where there is an answer and yet the command failed. LS_ERROR_NO_FIT: with "require-fit", or no
 * configuration of a sweep fits; LS_ERROR_TOLERANCE; LS_ERROR_STOPPED: with the results so far; LS_ERROR_IO:
 * a file could not be written. */
LS_PUBLIC gboolean ls_answer_check (const LsAnswer *answer, GError **error);

G_END_DECLS

#endif
