/* Flash-style attention, ours and cuDNN's, isolated, forward and backward. FLOPs: 4 seq^2 d for each head,
 * half if causal, 2.5 times that backward; bytes: Q, K, V in, O out, and those, dO and four
 * gradients: as the simulator counts them. */
#include <algorithm>
#include <set>

#include "bench.h"
#include "compare.h"
#include "cudnn.h"
#include "ops.h"

namespace kb {

/* ---- attention of cuDNN on the GPU ---- */

/* In device memory, in the layouts of reference.h; what a direction does not touch may be null. */
struct AttentionOperands {
  void *q, *k, *v, *out, *lse, *dout, *dq, *dk, *dv;
};

/* One direction of one shape, bf16. Scratch is its own; operands are the caller's and must outlive it. */
class CudnnAttention {
public:
  /* Builds the plan, which takes seconds: cuDNN compiles. Throws a Failure where there is no cuDNN, or none of its engines takes it. */
  CudnnAttention (cudaStream_t stream, const AttentionShape &shape, bool is_backward, const AttentionOperands &operands);
  void run (); /* queued on the stream */

private:
  cudaStream_t stream_;
  CudnnPlan plan_;
  Buffer<float> delta_, dq_sum_;
  Buffer<char> workspace_;
};

/* One for the program: to make one takes long. */
static void *
handle_on (cudaStream_t stream)
{
  static void *handle;
  if (!handle) {
    void *made = nullptr;
    cudnn ().require (cudnn ().create (&made), "cudnnCreate");
    handle = made;
  }
  cudnn ().require (cudnn ().set_stream (handle, stream), "cudnnSetStream");
  return handle;
}

static CudnnPlan
make_plan (cudaStream_t stream, const AttentionShape &shape, bool is_backward)
{
  size_t version = cudnn ().version ();
  CudnnTarget target;
  target.handle = handle_on (stream);
  return CudnnPlan (is_backward ? sdpa_backward (shape, version) : sdpa_forward (shape, version), target);
}

CudnnAttention::CudnnAttention (cudaStream_t stream, const AttentionShape &s, bool is_backward, const AttentionOperands &o)
  : stream_ (stream), plan_ (make_plan (stream, s, is_backward)), delta_ (is_backward ? s.sequences * s.heads * s.seq : 0),
    dq_sum_ (delta_.size () * s.d), workspace_ (plan_.workspace_bytes ())
{
  std::map<int64_t, void *> memory = { { SDPA_Q, o.q }, { SDPA_K, o.k }, { SDPA_V, o.v }, { SDPA_OUT, o.out }, { SDPA_LSE, o.lse } };
  if (is_backward)
    memory.insert ({ { SDPA_DOUT, o.dout }, { SDPA_DQ, o.dq }, { SDPA_DK, o.dk }, { SDPA_DV, o.dv }, { SDPA_DELTA, delta_.get () },
                     { SDPA_DQ_SUM, dq_sum_.get () } });
  plan_.bind (memory, workspace_.get ());
}

void
CudnnAttention::run ()
{
  if (dq_sum_.size () > 0 && !sdpa_zeroes_dq_sum (cudnn ().version ()))
    KB_CHECK (cudaMemsetAsync (dq_sum_.get (), 0, dq_sum_.size () * sizeof (float), stream_));
  plan_.run ();
}

/* --- against the reference ----------------------------------------------------------------- */

using T = __nv_bfloat16;

/* Of the same kind: as many heads of queries share one of keys. */
static AttentionShape
small_shape (const AttentionShape &s)
{
  size_t n_kv = std::min<size_t> (s.kv_heads, 2);
  return { 1, 256, n_kv * (s.heads / s.kv_heads), n_kv, s.d, s.is_causal };
}

static std::string
check_name (const AttentionShape &s, bool is_backward)
{
  return format ("attention cudnn bf16 %s d=%zu causal=%d heads-per-kv=%zu", is_backward ? "bwd" : "fwd", s.d, s.is_causal, s.heads / s.kv_heads);
}

/* As ours are compared, with the same tolerances: P and dS are rounded to 16 bits here too. */
static void
compare (Checks &checks, cudaStream_t stream, const std::string &name, const AttentionShape &s, bool is_backward)
{
  size_t n = s.sequences * s.seq * s.heads * s.d, n_kv = s.sequences * s.seq * s.kv_heads * s.d;
  Buffer<T> q = random_normal<T> (stream, n, 360), k = random_normal<T> (stream, n_kv, 361), v = random_normal<T> (stream, n_kv, 362);
  Buffer<T> dout = random_normal<T> (stream, n, 363), out = poisoned<T> (n), dq = poisoned<T> (n), dk = poisoned<T> (n_kv), dv = poisoned<T> (n_kv);
  Buffer<float> lse = poisoned<float> (s.sequences * s.heads * s.seq);
  AttentionReference r = attention_reference (s, download (stream, q), download (stream, k), download (stream, v), download (stream, dout));
  AttentionOperands o = { q.get (), k.get (), v.get (), out.get (), lse.get (), dout.get (), dq.get (), dk.get (), dv.get () };
  auto expect = [&] (const char *what, const auto &got, const Vector &reference, double times) {
    checks.expect_close (name + " " + what, download (stream, got), reference, times * bf16_tolerance ());
  };

  CudnnAttention (stream, s, false, o).run ();
  KB_CHECK (cudaStreamSynchronize (stream));
  expect ("out", out, r.out, 2);
  expect ("lse", lse, r.lse, 1);
  if (!is_backward)
    return;
  CudnnAttention (stream, s, true, o).run ();
  KB_CHECK (cudaStreamSynchronize (stream));
  expect ("dq", dq, r.dq, 3);
  expect ("dk", dk, r.dk, 3);
  expect ("dv", dv, r.dv, 3);
}

/* Compares attention of this kind (width, mask, heads that share keys) with its reference on a small problem, once. Returns what it
 * objects to; "" for nothing. */
static std::string
cudnn_attention_objection (Checks &checks, cudaStream_t stream, const AttentionShape &shape, bool is_backward)
{
  static std::set<std::string> seen;
  std::string name = check_name (shape, is_backward);
  if (seen.insert (name).second)
    checks.run ({ name }, [&] { compare (checks, stream, name, small_shape (shape), is_backward); });
  return checks.objection (std::vector<std::string> { name });
}

/* ---- the cases ---- */

/* Flash-style attention, ours and cuDNN's, isolated, forward and backward. FLOPs: 4 seq^2 d for each head,
 * half if causal, 2.5 times that backward; bytes: Q, K, V in, O out, and those, dO and four
 * gradients: as the simulator counts them. */

static constexpr double case_s = 0.6, elt = 2;
static constexpr double cudnn_case_s = 4; /* with a plan, which is compiled */

/* 8192 tokens in sequences of 1024 to 8192; heads of GPT-3 175B and Llama 3 on one of 8 ranks. */
static const AttentionShape shapes[] = {
  { 8, 1024, 12, 12, 128, true }, { 4, 2048, 12, 12, 128, true }, { 2, 4096, 12, 12, 128, true },
  { 1, 8192, 12, 12, 128, true }, { 4, 2048, 12, 12, 128, false }, { 1, 8192, 8, 1, 128, true },
  { 2, 4096, 32, 8, 128, true },  { 4, 2048, 16, 16, 64, true },
};

namespace {

template <typename T> struct Problem {
  AttentionShape shape;
  Buffer<T> q, k, v, out, dout, dq, dk, dv;
  Buffer<float> lse, scratch;

  Problem (const AttentionShape &s, cudaStream_t stream, size_t n_scratch)
    : shape (s), q (n_q ()), k (n_kv ()), v (n_kv ()), out (n_q ()), dout (n_q ()), dq (n_q ()), dk (n_kv ()), dv (n_kv ()),
      lse (s.sequences * s.seq * s.heads), scratch (n_scratch)
  {
    uint64_t seed = 500;
    for (Buffer<T> *x : { &q, &k, &v, &dout })
      fill_normal (stream, x->get (), x->size (), 1, seed++);
  }
  void forward (cudaStream_t stream) { attention (stream, shape, q.get (), k.get (), v.get (), out.get (), lse.get ()); }
  void backward (cudaStream_t stream)
  {
    attention_bwd (stream, shape, q.get (), k.get (), v.get (), out.get (), lse.get (), dout.get (), scratch.get (), dq.get (),
                   dk.get (), dv.get ());
  }
  AttentionOperands operands () const
  {
    return { q.get (), k.get (), v.get (), out.get (), lse.get (), dout.get (), dq.get (), dk.get (), dv.get () };
  }

private:
  size_t n_q () const { return shape.sequences * shape.seq * shape.heads * shape.d; }
  size_t n_kv () const { return shape.sequences * shape.seq * shape.kv_heads * shape.d; }
};

}

static Row
row_of (const AttentionShape &s, const char *dtype, bool is_backward)
{
  double tokens = (double) (s.sequences * s.seq), q = (double) (s.heads * s.d), kv = (double) (s.kv_heads * s.d);
  double flops = 4 * tokens * (double) s.seq * q * (s.is_causal ? 0.5 : 1);
  std::string shape = format ("%zux%zux%zux%zux%zu", s.sequences, s.seq, s.heads, s.kv_heads, s.d);
  Row row { "attention", is_backward ? "flash-attention-bwd" : "flash-attention-fwd", shape, dtype };
  row.flops = (is_backward ? 2.5 : 1) * flops;
  row.bytes = elt * tokens * (is_backward ? 4 * (q + kv) : 2 * (q + kv));
  row.note = format ("causal=%d", s.is_causal);
  return row;
}

template <typename T> static void
measure (Bench &bench, const AttentionShape &s, const char *dtype)
{
  Row forward = row_of (s, dtype, false), backward = row_of (s, dtype, true);
  if (bench.capability () < attention_capability) {
    for (const Row &row : { forward, backward })
      bench.leave_out (row, "our attention needs compute capability 8.0");
    return;
  }
  cudaStream_t stream = bench.stream ();
  std::unique_ptr<Problem<T>> problem; /* made by the first of the two that is measured */
  auto with_problem = [&] (auto run) {
    return [&, run] (Row &) {
      if (!problem)
        problem = std::make_unique<Problem<T>> (s, stream, attention_scratch (s));
      return bench.isolated ([&] { run (*problem); });
    };
  };
  bench.measure (forward, case_s, with_problem ([&] (Problem<T> &p) { p.forward (stream); }));
  bench.measure (backward, case_s, with_problem ([&] (Problem<T> &p) { p.backward (stream); }));
}

static Timing
time_cudnn (Bench &bench, const AttentionShape &s, bool is_backward)
{
  cudaStream_t stream = bench.stream ();
  std::string objection = bench.options ().skips_checks ? "" : cudnn_attention_objection (bench.checks (), stream, s, is_backward);
  if (!objection.empty ())
    throw Failure (objection);
  Problem<__nv_bfloat16> problem (s, stream, 0);
  CudnnAttention forward (stream, s, false, problem.operands ());
  std::unique_ptr<CudnnAttention> backward;
  if (is_backward)
    backward = std::make_unique<CudnnAttention> (stream, s, true, problem.operands ());
  bench.wake_up (); /* clocks fell while cuDNN compiled */
  forward.run ();   /* whose results the backward reads */
  return bench.isolated ([&] { (backward ? *backward : forward).run (); });
}

static void
measure_cudnn (Bench &bench, const AttentionShape &s)
{
  for (bool is_backward : { false, true }) {
    Row row = row_of (s, "bf16", is_backward);
    row.implementation = "cudnn";
    row.note += " implementation=cudnn";
    if (bench.capability () < attention_capability)
      bench.leave_out (row, "attention of cuDNN needs compute capability 8.0");
    else
      bench.measure (row, cudnn_case_s, [&] (Row &) { return time_cudnn (bench, s, is_backward); });
  }
}

void
bench_attention (Bench &bench)
{
  bench.wake_up ();
  for (const AttentionShape &s : shapes)
    measure<__nv_bfloat16> (bench, s, "bf16");
  measure<half> (bench, shapes[1], "fp16");
  for (const AttentionShape &s : shapes)
    measure_cudnn (bench, s);
}

}
