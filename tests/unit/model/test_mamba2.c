/* Pins what stands beside the products of Mamba-2's chunks, and what they keep: counts by hand of
 * mamba_split_conv1d_scan_combined of mamba_ssm, as modules with a norm of their own call it. */
#include "ls_test.h"

#include "model/mixer.h"
#include "model/operators_build.h"
#include "model_shapes.h"

enum { TOKENS = 2048, INNER = 1024, STATE = 128, GROUPS = 2, HEADS = 16, CHUNK = 128 };
#define IN   (2 * INNER + 2 * GROUPS * STATE + HEADS) /* columns into it: z, x, B, C, dt */
#define CONV (INNER + 2 * GROUPS * STATE)

static LsModel
mamba2 (void)
{
  LsModel m = llama (2, 512, 8, 8, 2048, 32000);
  m.seq = TOKENS;
  m.mixer.kind = LS_MIXER_MAMBA2;
  m.mixer.heads = HEADS;
  m.mixer.head_dim = INNER / HEADS;
  m.mixer.state = STATE;
  m.mixer.groups = GROUPS;
  m.mixer.chunk = CHUNK;
  m.mixer.conv = 4;
  return m;
}

static GArray *
mixer_operators (uint32_t micro_batch)
{
  LsModel m = mamba2 ();
  LsShard s = shard (&m, 1, false, micro_batch);
  LsCut cut;
  s.dtype = s.grad_dtype = LS_DTYPE_BF16;
  GArray *ops = operators_new ();
  ls_cut_init (&cut, &m, &s);
  ls_operators_mixer (ops, &cut);
  return ops;
}

/* Bytes of kernels by that name; 0: there is none. */
static double
bytes_named (const GArray *ops, const char *name, bool is_backward)
{
  double bytes = 0;
  for (guint i = 0; i < ops->len; i++) {
    const LsOperator *op = &g_array_index (ops, LsOperator, i);
    const LsKernel *kernels = is_backward ? op->igrad : op->fwd;
    for (uint32_t k = 0; k < (is_backward ? op->n_igrad : op->n_fwd); k++)
      bytes += g_str_equal (kernels[k].name, name) ? kernels[k].bytes : 0;
  }
  return bytes;
}

/* The convolution and the states are made again. */
static void
its_backward_makes_inputs_again (void)
{
  double states = (double) TOKENS / CHUNK * INNER * STATE;
  g_autoptr (GArray) ops = mixer_operators (1);
  LS_CHECK_DOUBLE (bytes_named (ops, "mixer-conv-again", true), ==, 2.0 * 2 * TOKENS * CONV);
  LS_CHECK_DOUBLE (bytes_named (ops, "state-passing-again", true), ==, 2 * 4 * states);
  LS_CHECK_DOUBLE (bytes_named (ops, "mixer-conv-again", false), ==, 0);
}

/* Kept: what the way in made, the scan's output before the gate, the input of the way out. */
static void
it_keeps_no_convolution_and_no_states (void)
{
  g_autoptr (GArray) ops = mixer_operators (1);
  LS_CHECK_INT (saved_bytes (ops, true), ==, 2 * TOKENS * (512 + IN + INNER + INNER));
}

/* The gate is in the norm: x, z and what they give; backward the gradient and two more. */
static void
the_gate_is_in_the_norm (void)
{
  const double inner = 2.0 * TOKENS * INNER;
  g_autoptr (GArray) ops = mixer_operators (2);
  LS_CHECK_DOUBLE (bytes_named (ops, "gated-norm", false), ==, 2 * 3 * inner);
  LS_CHECK_DOUBLE (bytes_named (ops, "gated-norm-bwd", true), ==, 2 * 5 * inner);
}

LS_TEST_SUITE (LS_TEST (its_backward_makes_inputs_again), LS_TEST (it_keeps_no_convolution_and_no_states),
               LS_TEST (the_gate_is_in_the_norm))
