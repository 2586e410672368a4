/* lockstep/error.h — the one error domain and its exit codes. */
#ifndef LOCKSTEP_ERROR_H
#define LOCKSTEP_ERROR_H

#include <glib.h>

#include <lockstep/export.h>

G_BEGIN_DECLS

#define LS_ERROR (ls_error_quark ())
LS_PUBLIC GQuark ls_error_quark (void);

typedef enum {
  LS_ERROR_FAILED,      /* 1: a run failed, or an internal invariant broke     */
  LS_ERROR_IO,          /* 1: writing a result failed                          */
  LS_ERROR_LIMIT,       /* 1: a budget or guard was exceeded                   */
  LS_ERROR_DEADLOCK,    /* 1: ops wait and no event is left                    */
  LS_ERROR_USAGE,       /* 2: a flag is unknown or its value malformed         */
  LS_ERROR_INPUT,       /* 3: a file is missing, unreadable or wrong           */
  LS_ERROR_CONFLICT,    /* 4: an illegal combination of legal values           */
  LS_ERROR_UNSUPPORTED, /* 4: legal, but no mechanism for it exists yet        */
  LS_ERROR_NO_FIT,      /* 4: it does not fit, with --require-fit or train      */
  LS_ERROR_TOLERANCE,   /* 5: outside the tolerance asked for                  */
  LS_ERROR_STOPPED,     /* 6: stopped before its end, with the results so far  */
} LsErrorCode;

/* The process exit code that an error stands for; 0 for NULL, 1 for errors of
 * other domains. */
LS_PUBLIC int ls_error_exit_code (const GError *error);

/* What a message quotes cannot drive a terminal any more: control characters but tabs and line breaks become
 * '?', bytes that are no UTF-8 become U+FFFD. Errors of ls_request_run() are so already. */
LS_PUBLIC void ls_error_make_printable (GError *error);

G_END_DECLS

#endif
