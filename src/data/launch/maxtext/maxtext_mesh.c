/* The mesh of a job of MaxText: axes of devices within a slice and over slices (src/maxtext/configs/base.yml
 * of e591f30cb). */
#include "data/launch/maxtext/maxtext_rules.h"

#include <string.h>

/* A degree that base.yml leaves to what devices there are. */
static bool
is_left (const LaunchJob *job, const char *option)
{
  return !launch_words_find (job->words, option)
      && (strcmp (option, "dcn_data_parallelism") == 0 || strcmp (option, "ici_fsdp_parallelism") == 0);
}

/* An axis of devices, within a slice (ici) and over slices (dcn); *ret_open: one of them is -1 or a hole. */
static guint64
axis (const LaunchJob *job, const char *name, bool *ret_open)
{
  static const char *const where[] = { "ici", "dcn" };
  guint64 product = 1;
  for (guint i = 0; i < G_N_ELEMENTS (where); i++) {
    g_autofree char *option = g_strdup_printf ("%s_%s_parallelism", where[i], name);
    guint64 n = option_number (job, option);
    if (is_left (job, option) || (launch_words_find (job->words, option) && n == 0))
      *ret_open = true;
    product *= MAX (1, MIN (n, 65536));
  }
  return MIN (product, G_MAXUINT32);
}

typedef struct {
  guint64 data, shards, tp, cp, pp, ep;
  bool data_open, shards_open, ep_open, is_open; /* left to the number of devices; another one is a hole */
} Mesh;

static Mesh
mesh_of (LaunchJob *job)
{
  Mesh m = { 0 };
  bool is_sequence = false;
  m.data = axis (job, "data", &m.data_open);
  m.shards = axis (job, "fsdp", &m.shards_open) * axis (job, "fsdp_transpose", &m.shards_open);
  guint64 sequence = axis (job, "tensor_sequence", &is_sequence);
  m.tp = import_times (axis (job, "tensor", &m.is_open) * axis (job, "tensor_transpose", &m.is_open),
                       sequence);
  m.cp = axis (job, "context", &m.is_open) * axis (job, "sequence", &m.is_open);
  m.pp = axis (job, "pipeline", &m.is_open);
  m.ep = axis (job, "expert", &m.ep_open);
  m.is_open = m.is_open || m.ep_open || is_sequence;
  import_set_strategy (job->import, "sp", m.tp > 1 ? "1" : "0", "tensor_sequence_parallelism");
  if (sequence > 1)
    import_infer (job->import, "sp: tensor_sequence_parallelism cuts sequences between layers");
  else if (m.tp > 1) /* logical_axis_rules of base.yml since 2023: activation_embed over tensor */
    import_infer (job->import,
                  "sp: what is between layers is cut over tensor, by its width; taken as if by tokens");
  return m;
}

/* What is left of slices for data parallelism over them, where the machines say how many there are. */
static bool
close_by_slices (LaunchJob *job, Mesh *m)
{
  static const char *const others[] = { "fsdp", "fsdp_transpose", "pipeline", "tensor", "expert", "context" };
  guint64 slices = job->slices;
  for (guint i = 0; i < G_N_ELEMENTS (others); i++) {
    g_autofree char *option = g_strdup_printf ("dcn_%s_parallelism", others[i]);
    guint64 n = option_number (job, option);
    slices = launch_words_find (job->words, option) && n == 0 ? 0 : slices / MAX (1, n);
  }
  bool is_of_slice = !launch_words_find (job->words, "ici_data_parallelism")
      || option_number (job, "ici_data_parallelism") > 0;
  if (slices == 0 || !is_of_slice)
    return false;
  m->data *= slices;
  m->data_open = false;
  return true;
}

/* dcn_data and ici_fsdp are -1 in base.yml, so that a job of one slice has data 1. */
static void
close_data (LaunchJob *job, Mesh *m)
{
  if (m->data_open && close_by_slices (job, m))
    return;
  if (m->data_open && !launch_words_find (job->words, "dcn_data_parallelism")) {
    m->data_open = false;
    import_infer (job->import, "dcn_data_parallelism 1: one slice, where nothing says how many");
  }
}

/* Of ranks that hold one shard of the weights. */
static guint64
n_others (const Mesh *m)
{
  return import_times (import_times (m->tp, m->cp), import_times (m->pp, m->data));
}

/* Ranks that hold one copy of the weights; 0: all ranks do, or how many is not known. */
static guint64
count_shards (const LaunchJob *job, const Mesh *m)
{
  guint64 of_model = n_others (m), gpus = job->import->strategy.gpus;
  if (!m->shards_open)
    return m->data > 1 || m->data_open ? import_times (m->shards, m->ep) : 0;
  bool is_known = m->data > 1 && !m->data_open && import_is_given (job->import, "gpus");
  return is_known && gpus % of_model == 0 ? gpus / of_model : 0;
}

/* What is left of the devices, if it is known how many there are. */
static void
close_experts (LaunchJob *job, Mesh *m)
{
  guint64 others = import_times (n_others (m), m->shards), gpus = job->import->strategy.gpus;
  bool is_known = import_is_given (job->import, "gpus") && gpus % others == 0;
  if (m->ep_open && is_known)
    m->ep = gpus / others;
  else if (m->ep_open)
    import_open (job->import, "ep", "ep: what the other degrees leave of the devices");
}

/* Of devices as JAX counts them, the chips: those of one chip are neighbours on the axis that is cut most. */
static void
join_chips (LaunchJob *job, Mesh *m)
{
  guint of_chip = MAX (1, job->of_chip);
  guint64 *axes[] = { &m->shards, &m->ep, &m->data };
  if (of_chip == 1 || m->shards_open || m->data_open || m->ep_open)
    return;
  for (guint i = 0; i < G_N_ELEMENTS (axes); i++)
    if (*axes[i] % of_chip == 0) {
      *axes[i] /= of_chip;
      return;
    }
  import_unknown (job->import, "how its axes lie on chips, of which each has %u devices of JAX", of_chip);
}

/* How many there are, where the machines that it is started on say so. */
static void
take_chips (LaunchJob *job, const Mesh *m)
{
  LsImport *import = job->import;
  guint64 chips = m->tp * m->cp * m->pp * m->data * m->shards * m->ep;
  bool is_closed = !m->data_open && !m->shards_open && !m->is_open;
  if (job->gpus == 0 || import_is_given (import, "gpus"))
    return;
  if (is_closed && chips != job->gpus)
    import_unknown (import,
                    "its degrees make %" G_GUINT64_FORMAT
                    " accelerators, and it is started on %" G_GUINT64_FORMAT,
                    chips, job->gpus);
  if (is_closed || job->gpus > G_MAXUINT32)
    return;
  import_set_strategy_number (import, "gpus", job->gpus);
  import_infer (import, "gpus %" G_GUINT64_FORMAT ": those that it is started on", job->gpus);
  g_hash_table_add (import->given, (gpointer) "gpus");
}

/* Its default is all_gather (src/maxtext/configs/types.py). */
static void
set_context_kind (LaunchJob *job, guint64 cp)
{
  const char *how = option_text (job, "context_parallel_strategy");
  if (cp > 1)
    import_set_strategy (job->import, "cp_kind",
                         !how || g_ascii_strcasecmp (how, "all_gather") == 0 ? "all-gather" : how,
                         "context_parallel_strategy");
}

static guint64
set_mesh (LaunchJob *job, Mesh *m)
{
  LsImport *import = job->import;
  bool is_sharded = m->shards > 1 || m->shards_open || m->ep > 1 || m->ep_open;
  import_set_strategy_number (import, "tp", m->tp);
  import_set_strategy_number (import, "cp", m->cp);
  set_context_kind (job, m->cp);
  import_set_strategy_number (import, "pp", m->pp);
  import_set_strategy (import, "dp_kind", "xla-fsdp", "--");
  close_data (job, m);
  join_chips (job, m);
  take_chips (job, m);
  close_experts (job, m);
  if (!import_is_open (import, "ep") && (m->ep > 1 || import->model.n_experts > 0))
    import_set_strategy_number (import, "ep", m->ep);
  guint64 shards = is_sharded ? count_shards (job, m) : 0;
  bool is_one = import_is_given (import, "gpus") && import->strategy.gpus == m->tp * m->cp * m->pp * shards;
  if (shards > 0 && m->ep > 1 && !is_one)
    import_unknown (import,
                    "copies of %" G_GUINT64_FORMAT
                    " shards, of experts over fsdp, of the rest over expert too: "
                    "weights are taken to be sharded over all devices",
                    shards);
  if (m->ep > 1)
    shards = 0;
  g_autofree char *group = g_strdup_printf ("3@%" G_GUINT64_FORMAT, shards);
  import_set_strategy (import, "zero", shards > 0 ? group : is_sharded ? "3" : "0", "ici_fsdp* dcn_fsdp*");
  if (m->pp > 1)
    import_unknown (import,
                    "the schedule of MaxText's pipeline: num_layers_per_pipeline_stage and its repeats");
  if (!m->data_open && !m->shards_open && !m->is_open)
    return m->data * m->shards * m->ep;
  if (job->gpus == 0)
    import_open (import, "gpus", "how many devices: a degree of -1 is what is left of them");
  return 0;
}

guint64
maxtext_set_mesh (LaunchJob *job)
{
  Mesh m = mesh_of (job);
  return set_mesh (job, &m);
}
