/* The plan reader without a GPU: JSON and its errors, what is refused and where, how kernels
 * of a trace are mapped, where operands lie; and that plan-small.json is listed byte for byte
 * as plan-small.csv says. LS_UPDATE_GOLDEN=1 rewrites that file.
 *
 * Usage: test_plan FOLDER-OF-THIS-FILE */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../plan.h"

using namespace kb;

static int n_failed;

static void
expect (bool is_true, const std::string &what)
{
  if (is_true)
    return;
  printf ("FAILED %s\n", what.c_str ());
  n_failed++;
}

static void
expect_error (const std::string &text, const std::string &message, uint64_t rank = 0)
{
  try {
    read_plan ("x.json", text, rank);
    expect (false, "no error; expected " + message);
  } catch (const PlanError &error) {
    expect (message == error.what (), std::string (error.what ()) + "\n  expected " + message);
  }
}

static std::string
read_whole (const std::string &path)
{
  std::string text;
  FILE *file = fopen (path.c_str (), "rb");
  for (int c; file && (c = getc (file)) != EOF;)
    text += (char) c;
  if (file)
    fclose (file);
  return text;
}

static void
test_json ()
{
  Json value = Json::parse ("x", "{ \"a\\u00e9\\ud83d\\ude00\\n\" : [ 1, -2.5e-1, true, null, \"\" ] }");
  expect (value.members ()[0].first == "a\xc3\xa9\xf0\x9f\x98\x80\n", "escapes");
  expect (value.members ()[0].second.items ()[1].number () == -0.25, "number");

  expect_error ("{ \"a\": 1, \"a\": 2 }", "x.json:1:11: error: the key \"a\" is there twice");
  expect_error ("{\n  \"a\": 01 }", "x.json:2:9: error: expected '}'");
  expect_error ("[1, 2,]", "x.json:1:7: error: expected a value");
  expect_error ("\"\xc3\xa9\" x", "x.json:1:5: error: expected the end of the file");
  expect_error ("\"\\ud800\"", "x.json:1:8: error: half a surrogate pair");
  expect_error ("nul", "x.json:1:4: error: expected a value, such as null");
  expect_error ("1e999", "x.json:1:1: error: the number is too large");
  expect_error ("", "x.json:1:1: error: expected a value; the file ends");
  expect_error ("[\"", "x.json:1:3: error: the file ends in a string");
  expect_error (std::string (70, '['), "x.json:1:66: error: more than 64 levels");
}

/* A trace of one segment on the given mesh. */
static std::string
trace (const char *kernels, const char *ops, const char *mesh = "{}")
{
  return std::string ("{\"schema\":\"lockstep.trace/1\",\"name\":\"x\",\"source\":\"test\",\n\"kernels\":[") + kernels
    + "],\n\"segments\":[{\"name\":\"s\",\"ops\":[\n" + ops + "]}],\n\"roles\":[{\"instances\":[[0]]}],\"mesh\":" + mesh + "}";
}

static void
test_refused ()
{
  static const char gemm[] = "{\"name\":\"g\",\"kind\":\"gemm\",\"dtype\":\"bf16\",\"m\":64,\"n\":64,\"k\":64}";
  static const char advice[] = "; kernelbench runs on one GPU, so export a job of one (--gpus 1 --tp 1 --pp 1 --dp 1)";
  expect_error ("{\"schema\":\"lockstep.model/1\"}",
                "x.json:1:1: error: no trace: \"schema\" must be \"lockstep.trace/1\" (lockstep trace export writes one)");
  expect_error (trace (gemm, "{\"op\":\"collective\",\"coll\":\"all-reduce\",\"slot\":\"dp\",\"bytes\":\"8B\"}", "{\"dp\":4}"),
                std::string ("x.json:4:1: error: a collective of 4 ranks") + advice);
  expect_error (trace (gemm, "{\"op\":\"p2p\",\"transfers\":[]}"),
                std::string ("x.json:4:1: error: rank 0 sends to or receives from other ranks") + advice);
  expect_error (trace (gemm, "{\"op\":\"kernel\",\"kernel\":1}"), "x.json:4:25: error: there are only 1 kernels");
  expect_error (trace (gemm, "{\"op\":\"kernel\"}"), "x.json:4:1: error: a kernel needs \"kernel\" or \"recorded\"");
  expect_error (trace (gemm, "{\"op\":\"kernel\",\"kernel\":0,\"after\":[0]}"),
                "x.json:4:36: error: an op waits for earlier ones of its segment only");
  expect_error (trace (gemm, "{\"op\":\"kernel\",\"kernel\":0,\"afer\":[0]}"), "x.json:4:34: error: unknown key \"afer\"");
  expect_error (trace (gemm, "{\"op\":\"wait\",\"event\":3}"),
                "x.json:4:1: error: the event was not recorded before, which kernelbench needs");
  expect_error (trace (gemm, "{\"op\":\"copy\",\"bytes\":\"8 apples\"}"),
                "x.json:4:22: error: expected a size such as \"64MiB\"; got \"8 apples\"");
  expect_error (trace (gemm, "{\"op\":\"kernel\",\"kernel\":0,\"buffers\":[{\"free\":1,\"category\":\"activations\",\"bytes\":\"8B\"}]}"),
                "x.json:4:38: error: no buffer of that id and size is allocated");
  expect_error (trace (gemm, ""), "x.json:5:10: error: the step has no ops");
  expect_error (trace (gemm, "{\"op\":\"record\"}"), "x.json:1:1: error: there is no rank 1: the trace has 1", 1);
  expect_error (trace ("{\"name\":\"a\",\"kind\":\"attention-fwd\",\"dtype\":\"bf16\",\"m\":96,\"n\":96,\"k\":80,\"batch\":2,\"bytes\":\"8B\"}",
                       "{\"op\":\"kernel\",\"kernel\":0}"),
                "x.json:2:12: error: the attention \"a\": kernelbench has it in bf16 and fp16, for heads of width 64, 96 and 128 and as many "
                "queries as keys, a multiple of 64");
  expect_error (trace ("{\"name\":\"g\",\"kind\":\"gemm\",\"dtype\":\"fp8\",\"m\":8,\"n\":64,\"k\":64}", "{\"op\":\"kernel\",\"kernel\":0}"),
                "x.json:2:12: error: the product \"g\": cuBLASLt takes fp8 in multiples of 16 only");
}

/* A shape that ours does not take, or other traffic than ours, streams instead. */
static void
test_mapping ()
{
  static const struct {
    const char *kernel;
    Impl impl;
  } cases[] = {
    { "{\"name\":\"swiglu\",\"kind\":\"elementwise\",\"dtype\":\"bf16\",\"m\":64,\"n\":64,\"bytes\":\"24576B\"}", Impl::SWIGLU },
    { "{\"name\":\"swiglu\",\"kind\":\"elementwise\",\"dtype\":\"fp32\",\"m\":64,\"n\":64,\"bytes\":\"24576B\"}", Impl::STREAM },
    { "{\"name\":\"swiglu\",\"kind\":\"elementwise\",\"dtype\":\"bf16\",\"m\":64,\"n\":64,\"bytes\":\"24577B\"}", Impl::STREAM },
    { "{\"name\":\"swiglu\",\"kind\":\"elementwise\",\"dtype\":\"bf16\",\"m\":64,\"n\":60,\"bytes\":\"23040B\"}", Impl::STREAM },
    { "{\"name\":\"x\",\"kind\":\"memset\",\"dtype\":\"bf16\",\"m\":64,\"n\":60,\"bytes\":\"23040B\"}", Impl::MEMSET },
    { "{\"name\":\"fc1-bias-grad\",\"kind\":\"reduction\",\"dtype\":\"bf16\",\"m\":64,\"n\":96,\"bytes\":\"12288B\"}", Impl::STREAM },
    { "{\"name\":\"fc1-bias-grad\",\"kind\":\"reduction\",\"dtype\":\"bf16\",\"m\":64,\"n\":128,\"bytes\":\"16384B\"}", Impl::COLUMN_SUM },
  };
  for (const auto &c : cases) {
    Plan plan = read_plan ("x.json", trace (c.kernel, "{\"op\":\"kernel\",\"kernel\":0}"), 0);
    expect (plan.kernels[0].impl == c.impl, std::string (impl_name (plan.kernels[0].impl)) + " for " + c.kernel);
    double moved = 0;
    for (const Operand &operand : operands_of (plan.kernels[0]))
      moved += (double) operand.bytes;
    if (plan.kernels[0].impl == Impl::STREAM || plan.kernels[0].impl == Impl::SWIGLU)
      expect (moved == plan.kernels[0].bytes, std::string ("all bytes are moved of ") + c.kernel);
  }
}

/* Every operand lies in its region, those of an op apart from each other, and what the op
 * before wrote is read where it was written. */
static void
test_places (const std::string &text, uint64_t max_ring)
{
  Plan plan = read_plan ("x.json", text, 0);
  place_operands (plan, max_ring);
  size_t n_hot = 0;
  for (const PlanOp &op : plan.ops)
    for (size_t i = 0; i < op.operands.size (); i++) {
      const Operand &a = op.operands[i];
      expect (a.offset % 256 == 0 && a.offset + a.bytes <= plan.region_bytes[(int) a.region], op.name + ": operand within its region");
      n_hot += a.is_hot && a.region == Region::WRITE;
      for (size_t j = 0; j < i; j++) {
        const Operand &b = op.operands[j];
        bool is_apart = a.region != b.region || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
        expect (is_apart, op.name + ": operands apart");
      }
    }
  expect (n_hot > 0, "some operand is hot");
}

static void
test_listing (const std::string &folder)
{
  std::string text = read_whole (folder + "/plan-small.json"), golden = folder + "/plan-small.csv";
  Plan plan = read_plan ("plan-small.json", text, 0);
  place_operands (plan, 1u << 30);
  std::string listed = plan_text (plan);
  if (getenv ("LS_UPDATE_GOLDEN") && strcmp (getenv ("LS_UPDATE_GOLDEN"), "1") == 0) {
    FILE *file = fopen (golden.c_str (), "wb");
    expect (file && fwrite (listed.data (), 1, listed.size (), file) == listed.size () && fclose (file) == 0, "golden written");
    return;
  }
  expect (listed == read_whole (golden), "plan-small.csv is what is listed; got\n" + listed);
  expect (plan_summary (plan).find ("CUDA graph") == std::string::npos, "no kernel is of a CUDA graph");
  std::string in_graph = text;
  in_graph.replace (in_graph.find ("\"op\": \"kernel\""), 14, "\"op\": \"kernel\", \"graph\": true");
  expect (plan_summary (read_plan ("in-graph.json", in_graph, 0)).find ("kernels of a CUDA graph are launched one by one") != std::string::npos,
          "one kernel is of a CUDA graph");
  expect (plan.static_bytes == 1u << 20 && plan.peak_buffer_bytes == 4u << 20, "memory");
  test_places (text, 1u << 30);
  test_places (text, 1u << 20);
}

int
main (int argc, char **argv)
{
  if (argc != 2) {
    printf ("usage: test_plan FOLDER\n");
    return 2;
  }
  test_json ();
  test_refused ();
  test_mapping ();
  test_listing (argv[1]);
  printf (n_failed == 0 ? "ok\n" : "%d failed\n", n_failed);
  return n_failed != 0;
}
