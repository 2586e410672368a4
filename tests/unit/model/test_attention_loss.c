/* Pins the kernels that frameworks put around flash attention and in the place of the
 * vocabulary-parallel loss: traffic in bytes per token, and what stays kept. */
#include "ls_test.h"

#include "model_shapes.h"

#define HIDDEN 2048
#define VOCAB  51200 /* a multiple of 128 */

static double
fwd_bytes (const LsOperator *o)
{
  double bytes = 0;
  for (uint32_t i = 0; i < o->n_fwd; i++)
    bytes += o->fwd[i].bytes;
  return bytes;
}

static double
igrad_bytes (const LsOperator *o)
{
  double bytes = 0;
  for (uint32_t i = 0; i < o->n_igrad; i++)
    bytes += o->igrad[i].bytes;
  return bytes;
}

typedef struct {
  double fwd, igrad, saved;
} Sums;

static Sums
sums (GArray *operators)
{
  Sums s = { 0 };
  for (guint i = 0; i < operators->len; i++) {
    const LsOperator *o = &g_array_index (operators, LsOperator, i);
    s.fwd += fwd_bytes (o);
    s.igrad += igrad_bytes (o);
    s.saved += (double) o->saved_bytes;
  }
  g_array_unref (operators);
  return s;
}

static LsModel
mpt (void)
{
  LsModel m = gpt (24, HIDDEN, 16);
  m.attention = LS_ATTENTION_FLASH;
  m.dropout = false;
  return m;
}

static Sums
layer_of_layout (LsQkvLayout layout)
{
  LsModel m = mpt ();
  LsShard s = shard (&m, 1, false, 1);
  s.qkv_layout = layout;
  return sums (layer_operators (&m, &s));
}

/* torch.cat of dQ, dK, dV: each of 3 h values of a token is read and written once. */
static void
gradients_of_views_are_concatenated (void)
{
  Sums joint = layer_of_layout (LS_QKV_JOINT), split = layer_of_layout (LS_QKV_SPLIT);
  double tokens = mpt ().seq;
  LS_CHECK_DOUBLE (split.fwd, ==, joint.fwd);
  LS_CHECK_DOUBLE (split.igrad - joint.igrad, ==, tokens * 3 * HIDDEN * 2 * 2);
  LS_CHECK_DOUBLE (split.saved, ==, joint.saved);
}

/* Forward: Q, K, V gathered (4 bytes a value), the context scattered into zeros (2 + 4), an index
 * of 8 bytes from a mask that is read twice for each of the three. Backward: the context's gradient
 * gathered, those of Q, K, V scattered into zeros. */
static void
padding_is_taken_out_and_put_back (void)
{
  Sums split = layer_of_layout (LS_QKV_SPLIT), unpadded = layer_of_layout (LS_QKV_UNPADDED);
  double tokens = mpt ().seq, values = tokens * HIDDEN;
  LS_CHECK_DOUBLE (unpadded.fwd - split.fwd, ==, values * (3 * 4 + 6) + tokens * 3 * (1 + 1 + 8));
  LS_CHECK_DOUBLE (unpadded.igrad - split.igrad, ==, values * (4 + 3 * 6));
  LS_CHECK_DOUBLE (unpadded.saved - split.saved, ==, values * 2);
}

static void
the_host_reads_two_results_of_each_mask (void)
{
  LsModel m = mpt ();
  LsShard s = shard (&m, 1, false, 1);
  s.qkv_layout = LS_QKV_UNPADDED;
  g_autoptr (GArray) layer = layer_operators (&m, &s);
  guint n = 0;
  for (guint i = 0; i < layer->len; i++)
    n += g_array_index (layer, LsOperator, i).n_host_reads;
  LS_CHECK_INT (n, ==, 6);
}

static Sums
head (LsLoss loss, uint32_t n_metrics)
{
  LsModel m = mpt ();
  LsShard s = shard (&m, 1, false, 1);
  s.loss = loss;
  s.train_metrics = n_metrics;
  GArray *operators = operators_new ();
  ls_operators_head (&m, &s, false, operators);
  return sums (operators);
}

/* Of a 16-bit logit, forward 2 bytes instead of 6 + 4 + 8 + 8 + 4 + 8, backward 4 instead of 8 + 6;
 * kept 2 instead of 4. */
static void
a_fused_loss_passes_once_each_way (void)
{
  Sums parallel = head (LS_LOSS_PARALLEL, 0), fused = head (LS_LOSS_FUSED, 0);
  double logits = (double) mpt ().seq * VOCAB;
  LS_CHECK_DOUBLE (parallel.fwd - fused.fwd, ==, logits * (38 - 2));
  LS_CHECK_DOUBLE (parallel.igrad - fused.igrad, ==, logits * (14 - 4));
  LS_CHECK_DOUBLE (parallel.saved - fused.saved, ==, logits * 2);
}

/* torch: to fp32 (2 + 4), log-softmax, which reads a row of words three times (12 + 4). */
static void
a_metric_is_a_loss_without_gradient (void)
{
  Sums none = head (LS_LOSS_FUSED, 0), two = head (LS_LOSS_FUSED, 2);
  LS_CHECK_DOUBLE (two.fwd - none.fwd, ==, 2 * 22 * (double) mpt ().seq * VOCAB);
  LS_CHECK_DOUBLE (two.igrad, ==, none.igrad);
}

LS_TEST_SUITE (LS_TEST (gradients_of_views_are_concatenated), LS_TEST (padding_is_taken_out_and_put_back),
               LS_TEST (the_host_reads_two_results_of_each_mask), LS_TEST (a_fused_loss_passes_once_each_way),
               LS_TEST (a_metric_is_a_loss_without_gradient))
