/* api/request.h — what a command reads of a request (private). */
#ifndef LS_API_REQUEST_H
#define LS_API_REQUEST_H

#include "api/commands.h"
#include "base/diag.h"
#include "base/parallel.h"
#include "job/job.h"

LsRequest *ls_request_of (const Command *command);
const Command *ls_request_command (const LsRequest *r);

/* Adds notes (char *) of what was set again, of which the last counts. */
void ls_request_note_again (const LsRequest *r, GPtrArray *notes);
/* "lockstep run --model gpt3-175b ...", quoted for a shell: what was set, in order. Newly allocated. */
char *ls_request_to_text (const LsRequest *r);

/* The value of one of its own options: of several the last; NULL: it was not set. Borrowed. */
const char *ls_request_text (const LsRequest *r, const char *key);
gboolean ls_request_is_on (const LsRequest *r, const char *key);
/* All values of a repeated option, which are borrowed; ends in NULL; NULL: there is none. g_free() the
 * array. */
const char **ls_request_texts (const LsRequest *r, const char *key);
/* What was set as the i-th, and its value, borrowed; NULL: there is no more. */
const LsOption *ls_request_given (const LsRequest *r, guint i, const char **ret_value);
/* The files of one option, and behind them those of another; likewise. */
const char **ls_request_paths (const LsRequest *r, const char *key, const char *other);
/* A whole number from min to max; what was not set leaves *value. LS_ERROR_USAGE. */
gboolean ls_request_number (const LsRequest *r, const char *key, gint64 min, gint64 max, gint64 *value,
                            GError **error);
/* "N[,N...]" with at most so many, as uint32_t; empty: it was not set. expected: what an error says of it. */
GArray *ls_request_ranks (const LsRequest *r, const char *key, guint most, const char *expected,
                          GError **error);
/* A whole number, of "threads": 0, or as said. */
gboolean ls_request_threads (const LsRequest *r, guint *ret_n, GError **error);
/* A limit in percent, from 0 to max. */
gboolean ls_request_percent (const LsRequest *r, const char *key, double max, double *value, GError **error);

/* Sets with ls_X_spec_set(), of the options that commands.txt says so of, those that the request has. All
 * malformed values are in the error, LS_ERROR_USAGE. */
typedef gboolean (*LsSetFunc) (gpointer target, const char *key, const char *value, LsDiagList *diags);
gboolean ls_request_set_own (const LsRequest *r, LsSetFunc set, gpointer target, GError **error);
/* Defines an LsSetFunc by that of one type. */
#define LS_REQUEST_SET(name, set)                                                                            \
  static gboolean name (gpointer target, const char *key, const char *value, LsDiagList *diags)              \
  {                                                                                                          \
    return set (target, key, value, diags);                                                                  \
  }
/* An LsSetFunc of a job: ls_job_spec_set(). */
gboolean ls_request_set_knob (gpointer spec, const char *key, const char *value, LsDiagList *diags);

/* Whether a knob of a job is set that is no option of the command itself. */
gboolean ls_request_has_knobs (const LsRequest *r);
/* Sets all knobs of the job, what sets defaults first, then in the order given. LS_ERROR_USAGE,
 * LS_ERROR_INPUT. */
gboolean ls_request_set_job (const LsRequest *r, LsSetFunc set, gpointer target, GError **error);
/* The same of a job. Clear with ls_job_spec_clear() in either case. */
gboolean ls_request_job (const LsRequest *r, LsJobSpec *ret_spec, GError **error);
/* The same of a launch file in the place of --from; NULL: as above. */
gboolean ls_request_job_of (const LsRequest *r, const char *from, LsJobSpec *ret_spec, GError **error);

/* Whether it is not one of a team, or leads it: the others have no results, and write nothing. */
gboolean ls_request_leads (const LsRequest *r);
/* Whether each file that an option names can be written; nothing is written by those of a team that do not
 * lead. Errors as of ls_write_file_check(), ls_picture_check(), ls_output_name(). */
gboolean ls_request_check_outputs (const LsRequest *r, GError **error);
/* "json" or "csv", else text. LS_ERROR_USAGE: both. */
gboolean ls_request_form (const LsRequest *r, LsForm *ret_form, GError **error);

LsProgress ls_request_progress (const LsRequest *r);
const gint *ls_request_stop (const LsRequest *r);
/* Says which files are near (base/near.h): those that values name, and data. */
void ls_request_name_files (const LsRequest *r);
LsTeam *ls_request_team (const LsRequest *r);

/* FALSE, with LS_ERROR_USAGE. */
/* "--format: expected one of "text", "json"; got "jsn"; did you mean "json"?". flag: NULL: a word that stands
 * alone. FALSE, with LS_ERROR_USAGE. */
gboolean ls_request_refuse_word (const char *flag, const char *const *words, const char *got, GError **error);
gboolean ls_request_refuse (const char *why, GError **error);
/* Whether one of its own options, of a NULL-terminated list of keys, is set, and not to "0". */
gboolean ls_request_has_any (const LsRequest *r, const char *const *keys);
/* Whether no rule of commands.txt forbids what is set together. LS_ERROR_USAGE. */
gboolean ls_request_check_rules (const LsRequest *r, GError **error);

#endif
