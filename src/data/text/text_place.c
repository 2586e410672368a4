#include "data/text/text_place.h"

#include <string.h>

void
ls_text_advance (const char *text, size_t n, int *line, int *col)
{
  for (size_t i = 0; i < n; i++) {
    if (text[i] == '\n') {
      ++*line;
      *col = 1;
    } else if (((unsigned char) text[i] & 0xc0) != 0x80) { /* first byte of a code point */
      ++*col;
    }
  }
}

static char *
line_around (const char *text, size_t offset)
{
  const char *start = text + offset;
  while (start > text && start[-1] != '\n')
    start--;
  return g_strndup (start, strcspn (start, "\r\n"));
}

void
ls_text_diag (LsErrorCode code, const char *name, const char *text, size_t offset, LsDiagList *diags,
              const char *pointer, const char *hint, const char *message)
{
  int line = 1, col = 1;
  ls_text_advance (text, offset, &line, &col);
  g_autofree char *source_line = line_around (text, offset);
  ls_diag_add (diags, code, name, line, col, pointer, source_line, hint, "%s", message);
}

bool
ls_file_diag (LsDiagList *diags, LsErrorCode code, const char *path, const char *hint, const char *format,
              ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  ls_diag_add (diags, code, path, 0, 0, NULL, NULL, hint, "%s", message);
  return false;
}

bool
ls_text_check (const char *text, size_t n, const char *name, const char *what, LsDiagList *diags)
{
  const char *nul = memchr (text, '\0', n), *end = nul;
  if (!nul && g_utf8_validate (text, (gssize) n, &end))
    return true;
  g_autofree char *message = g_strdup_printf ("%s; expected %s", nul ? "a NUL byte" : "invalid UTF-8", what);
  ls_text_diag (LS_ERROR_INPUT, name, text, (size_t) (end - text), diags, NULL, NULL, message);
  return false;
}

/* --- files of other programs ------------------------------------------------------ */

#define LOG "--from FILE reads it, after the script or configuration of its job"
#define CLUSTERS                                                                                             \
  "--cluster reads files of Lockstep in JSON and what NCCL dumps (NCCL_TOPO_DUMP_FILE), in a file *.xml; "   \
  "lockstep list clusters names those that are known"
#define NODE "lockstep topology --from FILE -o cluster.json makes of it what --cluster reads"
#define FABRIC                                                                                               \
  "lockstep topology --from CLUSTER --from FILE -o cluster.json makes of it, with nodes as of CLUSTER "      \
  "(lockstep list clusters), what --cluster reads"
#define TORCHTITAN "this looks like TOML of torchtitan: --from FILE reads it, and lockstep import shows it"

/* The first whose marks all are there. */
static const struct {
  const char *mark, *other; /* NULL: one is enough */
  const char *hint;
} lookalikes[] = {
  { "completed step: ", "TFLOP/s/device", "this looks like a log of MaxText: " LOG },
  { "***** Running training *****", NULL, "this looks like a log of Hugging Face's Trainer: " LOG },
  { "# nThread ", "busbw",
    "this looks like a log of nccl-tests: lockstep calibrate --nccl and collective --compare read it" },
  { "-model-parallel-size", NULL,
    "this looks like arguments of Megatron-LM: --from FILE reads them, and lockstep import shows them" },
  { "[parallelism]", NULL, TORCHTITAN },
  { "[training]", NULL, TORCHTITAN },
  { "<system", "<cpu",
    "this looks like a topology that NCCL dumps: --cluster FILE reads it, from a file *.xml" },
  { "Link Type between two GPUs", NULL, "this looks like what rocm-smi --showtopo prints: " NODE },
  { "GPU0", "CPU Affinity", "this looks like what nvidia-smi topo -m prints: " NODE },
  { "<topology", "<object", "this looks like XML of lstopo: " NODE },
  { "<platform", "<zone", "this looks like a platform of SimGrid: " CLUSTERS },
  { "npus_count", "bandwidth", "this looks like a network of ASTRA-sim: " CLUSTERS },
  { "vendid=", "guid=", "this looks like what ibnetdiscover prints: " FABRIC },
  { " - SW ", "' - '", "this looks like what ibnetdiscover -p prints: " FABRIC },
  { "SwitchName=", NULL, "this looks like topology.conf of Slurm: " FABRIC },
  { "\"model_type\"", "\"hidden_size\"", "this looks like a model of Hugging Face: --model FILE reads it" },
  { "lockstep.model/", NULL, "this looks like a model of Lockstep: --model FILE reads it" },
  { "lockstep.strategy/", NULL, "this looks like a strategy of Lockstep: --strategy FILE reads it" },
  { "lockstep.cluster/", NULL, "this looks like a cluster of Lockstep: --cluster FILE reads it" },
  { "#!/", NULL, "this looks like a script: --from FILE reads those that launch a training run" },
};

const char *
ls_lookalike_hint (const char *text)
{
  for (gsize i = 0; i < G_N_ELEMENTS (lookalikes); i++)
    if (strstr (text, lookalikes[i].mark) && (!lookalikes[i].other || strstr (text, lookalikes[i].other)))
      return lookalikes[i].hint;
  return NULL;
}
