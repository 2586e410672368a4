/* data/launch/launch_gpus.h — on how many GPUs a command starts a job, by its launcher and the lines of a
 * batch system (private to launch/). */
#ifndef LS_DATA_LAUNCH_LAUNCH_GPUS_H
#define LS_DATA_LAUNCH_LAUNCH_GPUS_H

#include "data/launch/import_reader.h"
#include "data/launch/launch_words.h"
#include "data/shell/shell.h"

/* What lines of a batch system ask for; 0: not said. */
typedef struct {
  guint64 nodes, per_node;
  guint64 submitted_nodes, submitted_per_node; /* which options of sbatch ask for: these go before lines */
} LaunchBatch;

/* The number at the end: "8", "gpu:8", "gpu:a100:8"; 0: there is none. */
guint64 launch_last_number (const char *text);

/* "#SBATCH --nodes=4", "#PBS -l select=4:ngpus=8". Variables that the batch system sets are set in the
 * shell. */
void launch_read_directive (LaunchBatch *batch, LsShell *shell, const LsShellCommand *line);

/* "sbatch --nodes=4 --export=A=1 job.sh": for the script that it starts; what is not decided is told. */
void launch_read_submit (LaunchBatch *batch, LsShell *shell, const LsShellCommand *c, LsImport *import);
/* A variable that is given: that of the nodes goes before lines, too. */
void launch_given_nodes (LaunchBatch *batch, const char *name, const char *value);

/* front: char *, the words in front of the script of Python. is_one_of_many: each process has one GPU, and
 * something else starts them. 0: not known; what is not decided is told in import. */
guint64 launch_count_gpus (const LaunchBatch *batch, const GPtrArray *front, bool is_one_of_many,
                           LsImport *import);

/* Whether a job has one of these options, with blanks between; NULL: there are none. */
bool launch_says_gpus (const char *options, const LaunchWords *words);

#endif
