/* api/commands.h — the table of commands: each is a command_X.c that answers a request; commands.txt says
 * what it is asked by (private). */
#ifndef LS_API_COMMANDS_H
#define LS_API_COMMANDS_H

#include <lockstep/lockstep.h>

/* Fills the answer. FALSE with *error set: there is none. */
typedef gboolean CommandRun (const LsRequest *request, LsAnswer *answer, GError **error);

CommandRun command_run, command_sweep, command_collective, command_kernel, command_calibrate, command_compare,
    command_topology, command_schedule, command_validate, command_whatif, command_memory, command_share,
    command_place, command_trace, command_import, command_list, command_check, command_train, command_schema,
    command_capture, command_lab;

typedef struct {
  LsCommand shown;    /* first: a pointer to it is one to all */
  GArray *own;        /* LsOption: its own, which hide knobs of a job with the same flag */
  GPtrArray *set;     /* keys of its own that ls_request_set_own() sets; these and those below end in NULL */
  GPtrArray *job_too; /* keys of its own that the job has too */
  char **without;     /* flags of a job that it does not take */
  char **rules;       /* of what goes with what; NULL: none */
  GArray *options;    /* all, once they are asked for */
  gsize has_options;
  CommandRun *run;
} Command;

/* All commands by commands.txt, without what runs them; the first is none, and has what others share. */
GPtrArray *commands_read (void);
/* The option of a key, with dashes or underscores; NULL: there is none. */
const LsOption *command_option (const LsCommand *command, const char *key);

#endif
