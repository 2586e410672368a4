/* tools/kernelbench/plan.h — one rank's step from a trace (lockstep.trace/1, traces/README.md)
 * as a list of launches: which kernel of ours stands for each op, what it reads and writes,
 * what it waits for. Host code; plan_run.cpp executes it.
 *
 * A trace says how many bytes a kernel moves, not which tensors. So operands are placed by a
 * rule: the first 16-bit input is what the op before it on the stream wrote, if that is large
 * enough and still there (it may be in L2); all other inputs come from a ring of random numbers that
 * nothing writes, outputs go around another ring. The rings are as large as what a step
 * moves, up to a limit, so a weight or a saved activation is as far away as in training.
 *
 * Kernels of 16-bit tensors that stream through memory run in fp16 also where the trace says
 * bf16: the traffic is the same. Products and attention run in the trace's type. */
#ifndef LS_KERNELBENCH_PLAN_H
#define LS_KERNELBENCH_PLAN_H

#include "json.h"

namespace kb {

enum class Impl {
  GEMM, ATTENTION, ATTENTION_BWD, LAYERNORM, LAYERNORM_DGRAD, LAYERNORM_GAMMA_BETA, RMSNORM, RMSNORM_BWD, SOFTMAX,
  SOFTMAX_BWD, BIAS_GELU, GELU_BWD, SWIGLU, SWIGLU_BWD, ADD, BIAS_ADD, DROPOUT, BIAS_DROPOUT_ADD, DROPOUT_BWD, GATHER,
  COLUMN_SUM, ADAM, FLOAT_TO_HALF, HALF_TO_FLOAT, UNSCALE, SUM_SQUARES, SCALE, MEMSET,
  STREAM, /* as many bytes, a share of them written: no kernel of ours has this access pattern */
  SPIN,   /* as long as recorded */
};
const char *impl_name (Impl impl);

/* Where operands lie: two rings, and memory that is shared by all ops. */
enum class Region { READ, WRITE, FLOATS, MOMENT, MASK, IDS, STATS, PARTIAL };
constexpr int n_regions = 8;

struct Operand {
  Region region;
  uint64_t bytes;
  bool is_hot = false; /* takes the place of the last output, if that is large enough */
  uint64_t offset = 0; /* within the region, a multiple of 256 */
};

struct PlanKernel {
  std::string name, kind, dtype;
  uint64_t m = 0, n = 0, k = 0, batch = 1;
  double flops = 0, bytes = 0;
  Impl impl = Impl::STREAM;
  std::string layout;       /* of a product: "TN", "NN", "NT"                       */
  bool accumulates = false; /* it adds to fp32                                      */
  uint64_t kv_batch = 0;    /* of attention: sequences * key/value heads            */
  bool is_causal = false;
  double write_share = 0.5; /* of STREAM                                            */
};

enum class OpKind { KERNEL, COPY, JOIN, HOST_SYNC, HOST_DELAY };

struct PlanOp {
  OpKind kind = OpKind::JOIN;
  int stream = 0; /* index into plan_streams */
  std::string name, tag, segment;
  uint64_t micro_batch = 0, chunk = 0;
  int layer = -1;
  bool is_in_graph = false;       /* of a CUDA graph in the trace; here it is launched by itself */
  int kernel = -1;                /* into kernels; -1: none, SPIN                    */
  uint64_t recorded_ps = 0, bytes = 0;
  bool to_device = true;
  std::vector<size_t> waits;      /* ops whose end it awaits, of other streams        */
  bool waits_for_all = false;     /* of a host sync                                   */
  std::vector<Operand> operands;  /* as operands_of () orders them                    */
};

struct Plan {
  std::string name;
  uint64_t rank = 0, n_ranks = 1;
  std::vector<PlanKernel> kernels;
  std::vector<PlanOp> ops; /* of a step, in the order in which the host issues them */
  uint64_t static_bytes = 0, peak_buffer_bytes = 0;
  uint64_t region_bytes[n_regions] = {};
};

extern const char *const plan_streams[]; /* names, null-terminated */

/* Throws PlanError: a file that is no trace, a rank that communicates, a shape that no
 * kernel here takes. */
Plan read_plan (const std::string &file, const std::string &text, uint64_t rank);

/* The kernels of a job, to be timed one by one (lockstep kernel --list-shapes, or a trace): each a
 * plan of one op. Throws PlanError: the file is neither. */
struct Shape {
  Plan plan;
  std::string name, problem; /* problem: why kernelbench cannot run it; "": it can */
};
std::vector<Shape> read_shapes (const std::string &file, const std::string &text);

/* What an op of that kernel reads and writes, without places. */
std::vector<Operand> operands_of (const PlanKernel &kernel);

/* Sets offsets and region_bytes; a ring has at most max_ring_bytes unless an op needs more. */
void place_operands (Plan &plan, uint64_t max_ring_bytes);

/* A line per op, with a header: what would run. */
std::string plan_text (const Plan &plan);
std::string plan_summary (const Plan &plan); /* for people, ends in a newline */
/* "rank,stream,...": the columns that the measured spans share with it, of one op. */
std::string plan_columns (const Plan &plan, size_t op);
extern const char plan_column_names[];

/* --- which of our kernels stands for one of a trace; private to plan*.cpp --- */

/* Reads one of `kernels`, all but what its layout says about its use. */
PlanKernel read_plan_kernel (const Json &json);

/* The layout of a product whose name says none, from the tag of an op that runs it. */
void set_layout (PlanKernel &kernel, const std::string &tag);

/* Fails unless all keys of an object are among these or begin with "x-". */
void require_keys (const Json &object, std::initializer_list<const char *> keys);

}

#endif
