#include "data/text/lookalike.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>

#define MAX_HEAD 65536 /* bytes that show what a file is */

/* Whether a text has these words in this order. */
static bool
has_words (const char *text, const char *const *words)
{
  for (; text && *words; words++) {
    text = strstr (text, *words);
    text = text ? text + strlen (*words) : NULL;
  }
  return text != NULL;
}

#define NODE   ": --cluster FILE reads it, and so does lockstep topology --from FILE"
#define FABRIC ": --cluster CLUSTER+FILE reads it, with nodes as of CLUSTER (lockstep list clusters)"

/* A file is of the first row whose words it has. What was not given as a machine needs `also` to look like
 * it. */
static const struct {
  const char *name, *words[4], *also, *hint;
} machines[LS_N_MACHINE_FILES] = {
  [LS_MACHINE_NCCL]
  = { "a topology file of NCCL", { "<system" }, "<cpu", "this looks like a topology that NCCL dumps" NODE },
  [LS_MACHINE_LSTOPO]
  = { "an XML file of lstopo", { "<topology" }, "<object", "this looks like XML of lstopo" NODE },
  [LS_MACHINE_ROCM] = { "the output of rocm-smi --showtopo",
                        { "Link Type between two GPUs" },
                        "GPU",
                        "this looks like what rocm-smi --showtopo prints" NODE },
  [LS_MACHINE_MATRIX] = { "the output of nvidia-smi topo -m",
                          { "GPU0", "X" },
                          "CPU Affinity",
                          "this looks like what nvidia-smi topo -m prints" NODE },
  [LS_MACHINE_GPU_LIST] = { "the output of nvidia-smi -L",
                            { "GPU ", "(UUID: GPU-" },
                            ": NVIDIA",
                            "this looks like what nvidia-smi -L prints" NODE },
  [LS_MACHINE_IBNETDISCOVER] = { "the output of ibnetdiscover",
                                 { "Switch", "\"S-", "[" },
                                 "guid=",
                                 "this looks like what ibnetdiscover prints" FABRIC },
  [LS_MACHINE_IB_PORTS] = { "the output of ibnetdiscover -p",
                            { " 0x", "( '", "' - '" },
                            " - SW ",
                            "this looks like what ibnetdiscover -p prints" FABRIC },
  [LS_MACHINE_SLURM_TREE]
  = { "Slurm's topology.conf", { "SwitchName=" }, "=", "this looks like topology.conf of Slurm" FABRIC },
  [LS_MACHINE_SLURM_BLOCKS] = { "Slurm's topology.conf of blocks",
                                { "BlockName=" },
                                "Nodes=",
                                "this looks like topology.conf of Slurm" FABRIC },
  [LS_MACHINE_IBSIM]
  = { "a network of ibsim", { "Switch", "[", "\"[" }, "Hca", "this looks like a network of ibsim" FABRIC },
  [LS_MACHINE_INFRAGRAPH] = { "a file of InfraGraph",
                              { "components", "xpu", "ep1" },
                              "scheme",
                              "this looks like a file of InfraGraph" NODE },
  [LS_MACHINE_INFRAGRAPH_OLD] = { "a file of InfraGraph's first versions",
                                  { "components:", "xpu", "connections:" },
                                  "type:",
                                  "this looks like a file of InfraGraph" NODE },
};

LsMachineFile
ls_machine_file_of (const char *text, size_t n)
{
  g_autofree char *head = g_strndup (text, MIN (n, MAX_HEAD));
  const bool is_json = text[strspn (head, " \t\r\n")] == '{';
  LsMachineFile kind = is_json ? LS_MACHINE_INFRAGRAPH : 0;
  while (kind < LS_N_MACHINE_FILES && !has_words (head, machines[kind].words))
    kind++;
  return kind;
}

const char *
ls_machine_file_name (LsMachineFile kind)
{
  return machines[kind].name;
}

#define LOG "--from FILE reads it, after the script or configuration of its job"
#define CLUSTERS                                                                                             \
  "--cluster reads files of Lockstep in JSON and what shows a machine (lockstep topology --help); lockstep " \
  "list clusters names those that are known"
#define TORCHTITAN "this looks like TOML of torchtitan: --from FILE reads it, and lockstep import shows it"

/* The first whose marks all are there; `other` NULL: one is enough. */
typedef struct {
  const char *mark, *other, *hint;
} Lookalike;

static const Lookalike before_machines[] = {
  { "completed step: ", "TFLOP/s/device", "this looks like a log of MaxText: " LOG },
  { "***** Running training *****", NULL, "this looks like a log of Hugging Face's Trainer: " LOG },
  { "# nThread ", "busbw",
    "this looks like a log of nccl-tests: lockstep calibrate --nccl and collective --compare read it" },
  { "-model-parallel-size", NULL,
    "this looks like arguments of Megatron-LM: --from FILE reads them, and lockstep import shows them" },
  { "[parallelism]", NULL, TORCHTITAN },
  { "[training]", NULL, TORCHTITAN },
};

static const Lookalike after_machines[] = {
  { "<graphs", "<graph ",
    "this looks like a graph of NCCL (NCCL_GRAPH_FILE), which is no topology: "
    "NCCL_TOPO_DUMP_FILE=FILE.xml has NCCL dump that" },
  { "<platform", "<zone", "this looks like a platform of SimGrid: " CLUSTERS },
  { "npus_count", "bandwidth", "this looks like a network of ASTRA-sim: " CLUSTERS },
  { "\"model_type\"", "\"hidden_size\"", "this looks like a model of Hugging Face: --model FILE reads it" },
  { "lockstep.model/", NULL, "this looks like a model of Lockstep: --model FILE reads it" },
  { "lockstep.strategy/", NULL, "this looks like a strategy of Lockstep: --strategy FILE reads it" },
  { "lockstep.cluster/", NULL, "this looks like a cluster of Lockstep: --cluster FILE reads it" },
  { "#!/", NULL, "this looks like a script: --from FILE reads those that launch a training run" },
};

static const char *
hint_of (const Lookalike *rows, size_t n, const char *text)
{
  for (size_t i = 0; i < n; i++)
    if (strstr (text, rows[i].mark) && (!rows[i].other || strstr (text, rows[i].other)))
      return rows[i].hint;
  return NULL;
}

static const char *
machine_hint (const char *text)
{
  for (size_t i = 0; i < LS_N_MACHINE_FILES; i++)
    if (has_words (text, machines[i].words) && strstr (text, machines[i].also))
      return machines[i].hint;
  return NULL;
}

const char *
ls_lookalike_hint (const char *text)
{
  const char *hint = hint_of (before_machines, G_N_ELEMENTS (before_machines), text);
  hint = hint ? hint : machine_hint (text);
  return hint ? hint : hint_of (after_machines, G_N_ELEMENTS (after_machines), text);
}
