/* The program at the beginning of lockstep.h, which run.sh holds against it, and builds
 * and runs against an installed Lockstep. */
#include <stdio.h>

#include <lockstep/lockstep.h>

static LsAnswer *
simulate (GError **error)
{
  static const char *const options[][2] = {
    { "model", "llama3.1-8b" }, { "cluster", "dgx-h100" }, { "gpus", "8" }, { "tp", "2" }, { "pp", "2" },
  };
  g_autoptr (LsRequest) request = ls_request_new ("run", error);
  for (guint i = 0; i < G_N_ELEMENTS (options); i++)
    if (!ls_request_set (request, options[i][0], options[i][1], error))
      return NULL;
  return ls_request_run (request, error);
}

int
main (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (LsAnswer) answer = simulate (&error);
  if (!answer) {
    fprintf (stderr, "%s\n", error->message);
    return ls_error_exit_code (error);
  }
  g_autofree char *text = ls_answer_format (answer, LS_FORM_TEXT, NULL);
  printf ("%s", text);
  return 0;
}
