/* api/commands.h — the table of commands: each is a command_X.c that says its options and answers a request
 * (private). */
#ifndef LS_API_COMMANDS_H
#define LS_API_COMMANDS_H

#include <lockstep/lockstep.h>

typedef struct {
  LsCommand shown; /* first: a pointer to it is one to all */
  /* Its own options, which hide knobs of a job with the same flag; ends with the key NULL. Of an option only
   * key, argument, meaning, letter and what follows it are given. */
  const LsOption *own;
  const char *const *job_too; /* keys of its own options that the job has too; NULL: none       */
  const char *const *without; /* flags of a job that it does not take, ends in NULL; NULL: none */
  /* Fills the answer. FALSE with *error set: there is none. */
  gboolean (*run) (const LsRequest *request, LsAnswer *answer, GError **error);
} Command;

extern const Command command_run, command_sweep, command_collective, command_kernel, command_calibrate,
    command_compare, command_topology, command_schedule, command_validate, command_whatif, command_memory,
    command_share, command_place, command_trace, command_import, command_list, command_check, command_train,
    command_schema, command_capture;

/* The option of a key, with dashes or underscores; NULL: there is none. */
const LsOption *command_option (const LsCommand *command, const char *key);

#endif
