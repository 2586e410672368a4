/* Requests from a line of text: "model tiny cluster pair tp 2" is keys and values in turn; "-" stands for no
 * value. */
#ifndef LS_TESTS_ASKED_H
#define LS_TESTS_ASKED_H

#include "ls_test.h"

#include <string.h>

#include <lockstep/lockstep.h>

/* NULL with *error: a key or value was refused. */
static inline LsRequest *
request_of (const char *command, const char *options, GError **error)
{
  g_autoptr (LsRequest) request = ls_request_new (command, error);
  g_auto (GStrv) words = g_strsplit (options, " ", -1);
  for (char **w = words; request && *w; w += 2)
    if (!ls_request_set (request, w[0], strcmp (w[1], "-") == 0 ? NULL : w[1], error))
      return NULL;
  return g_steal_pointer (&request);
}

/* NULL with *error, also where it cannot be answered. The request is gone by then. */
static inline LsAnswer *
try_to_ask (const char *command, const char *options, GError **error)
{
  g_autoptr (LsRequest) request = request_of (command, options, error);
  return request ? ls_request_run (request, error) : NULL;
}

/* A failed check if there is no answer. */
static inline LsAnswer *
asked (const char *command, const char *options)
{
  g_autoptr (GError) error = NULL;
  LsAnswer *answer = try_to_ask (command, options, &error);
  ls_check_impl (answer != NULL, __FILE__, __LINE__, "%s %s: %s", command, options,
                 error ? error->message : "no error");
  return answer;
}

/* Whether it fails with that code, at asking or by its answer. */
static inline void
check_fails (const char *command, const char *options, LsErrorCode code)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsAnswer) answer = try_to_ask (command, options, &error);
  if (answer)
    ls_answer_check (answer, &error);
  ls_check_impl (g_error_matches (error, LS_ERROR, (int) code), __FILE__, __LINE__, "%s %s: %s", command,
                 options, error ? error->message : "no error");
}

#endif
