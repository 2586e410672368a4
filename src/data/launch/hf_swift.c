/* What sequence_parallel_size of ms-swift means of a model: Ulysses over as many ranks as divide its heads of
 * keys, and a ring over the others (swift/sequence_parallel/sequence_parallel.py of modelscope/ms-swift,
 * 3602360a, August 2026). */
#include "base/gcd.h"
#include "data/jobs/job_files.h"
#include "data/launch/hf_rules.h"

/* Of the model that an option names; 0: it is not known here. */
static guint64
key_heads_of (const char *name)
{
  LsModel m = { 0 };
  bool is_decoder;
  g_autofree char *found = NULL;
  if (!import_find_model (name, &m, &is_decoder, &found))
    return 0;
  guint64 heads = m.n_kv_heads;
  ls_model_clear (&m);
  return heads;
}

void
hf_swift_say (const LaunchJob *own, guint64 gpus, LaunchWords *to)
{
  guint64 ranks = option_number (own, "sequence_parallel_size"),
          heads = key_heads_of (option_text (own, "model"));
  guint64 cut
      = heads > 0 && ranks > 0 ? ls_gcd ((uint32_t) heads, (uint32_t) MIN (ranks, G_MAXUINT32)) : ranks;
  if (ranks <= 1)
    return;
  launch_words_add_by (to, false, "context_parallel_kind", cut == ranks ? "ulysses" : "ring");
  if (cut != ranks)
    import_unknown (own->import,
                    "sequence_parallel_size %" G_GUINT64_FORMAT ": Ulysses over %" G_GUINT64_FORMAT
                    " ranks, as %" G_GUINT64_FORMAT
                    " heads of keys allow, and a ring over the others: taken for a ring",
                    ranks, cut, heads);
  else if (heads == 0)
    import_unknown (own->import,
                    "sequence_parallel_size %" G_GUINT64_FORMAT
                    ": taken for Ulysses; heads of keys that it does not divide go around a ring, too",
                    ranks);
}
