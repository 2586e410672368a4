/* Flash-style attention, ours and cuDNN's, isolated, forward and backward. FLOPs: 4 seq^2 d for each head,
 * half if causal, 2.5 times that backward; bytes: Q, K, V in, O out, and those, dO and four
 * gradients: as the simulator counts them. */
#include "bench.h"
#include "cudnn_attention.h"
#include "ops.h"

namespace kb {

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
