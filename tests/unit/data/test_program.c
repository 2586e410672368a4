/* Pins what expressions of maps are, what of a map is refused with which reason and place, and that damage to
 * one ends in a map or in a reason. What maps mean is in tests/frozen and in the tests of what they read. */
#include "ls_test.h"

#include <math.h>
#include <string.h>

#include "../../fuzz/mutate.h"
#include "data/datadir.h"
#include "data/launch/program/program_map.h"

static void
expressions_have_values (void)
{
  static const struct {
    const char *expression, *value; /* NULL: none */
  } cases[] = {
    { "1 + 2 * 3", "7" },
    { "(1 + 2) * 3", "9" },
    { "7 % 4 - 1", "2" },
    { "10 - 3 - 2", "5" },
    { "1 / 0", NULL },
    { "7 / 2", "3.5" },
    { "floor(7 / 2) + ceil(0.5)", "4" },
    { "power(2, round(log2(1000)))", "1024" },
    { "2 < 3 and not 3 <= 2", "1" },
    { "2 > 3 or 3 >= 4", "0" },
    { "1 = 1.0", "1" },
    { "'1' = 1", "1" },
    { "'a' != 'b'", "1" },
    { "'swiglu' has 'glu'", "1" },
    { "'a' in 'b a c'", "1" },
    { "'b a' in 'b a c'", "0" },
    { "1 ? 'yes' : 'no'", "yes" },
    { "'' ? 1 : 0 ? 2 : 3", "3" },
    { "lower('FSDP')", "fsdp" },
    { "without('amp_bf16', 'amp_')", "bf16" },
    { "without_end('a//', '/')", "a" },
    { "behind('torch.optim.AdamW', '.')", "AdamW" },
    { "behind('AdamW', '.')", "AdamW" },
    { "parsed('8 GPUs') + parsed(2)", "10" },
    { "positive(3)", "3" },
    { "positive(0)", NULL },
    { "'{1 + 1}@{4 / 2}'", "2@2" },
    { "'{\"a\": {1 + 1}}'", "{\"a\": 2}" },
    { "gcd(12, 18)", "6" },
    { "starts('hf_causal', 'hf_') + starts('causal', 'hf_')", "1" },
    { "first(1 / 0, 5)", "5" },
    { "group('llama3_70b_pretrain_64gpu_h100', '([0-9]+)gpu_')", "64" },
    { "group('llama3', '_(gpu)')", NULL },
    { "group(1 / 0, '(a)')", NULL },
    { "decided('a')", "a" },
    { "count_in('gpu:a100:8') + count_in('x')", "8" },
    { "times(2, 3)", "6" },
    { "times('$N', 2)", "$(($N*2))" },
    { "times(1, '$N')", "$N" },
    { "quoted('a \"b\" $(C) $(date -u) `d`')", "\"a \\\"b\\\" ${C} \\$(date -u) \\`d\\`\"" },
    { "commands() + size(/)", "0" },
    { "scalar(.)", NULL },
    { "max(2, min(9, 4))", "4" },
    { "text_at(nowhere)", NULL },
  };
  const ProgramMap map = { 0 };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    ProgramRun run = { .map = &map };
    ProgramValue v = program_eval (&run, cases[i].expression);
    g_autofree char *text = program_value_is_none (&v) ? NULL : program_value_text (&v);
    ls_check_impl (g_strcmp0 (text, cases[i].value) == 0 && !run.wrong, __FILE__, __LINE__, "%s: %s (%s)",
                   cases[i].expression, text ? text : "none", run.wrong ? run.wrong : "right");
    program_value_clear (&v);
    g_free (run.wrong);
  }
}

static void
wrong_expressions_are_said (void)
{
  static const struct {
    const char *expression, *says;
  } cases[] = {
    { "", "a value is missing" },
    { "1 +", "a value is missing" },
    { "(1", "a parenthesis has no end" },
    { "'a", "a text has no end" },
    { "'{1'", "\"{1\" has no }" },
    { "'{1 +}'", "a value is missing" },
    { "1 2", "what does \"2\" mean here?" },
    { "f(1)", "there is no function f" },
    { "min(1)", "min takes 2 arguments" },
    { "lower('a'", "lower ( ... has no end" },
    { "x + 1", "no rule before says what x is" },
    { "1 ? 2", "\"?\" has no \":\"" },
    { "has(hidden)", "there is no key hidden: expected model.KEY or strategy.KEY" },
    { "key(model.colour)", "there is no key model.colour" },
    { "on(>a)", "its options become those of no other program" },
    { "matches('(')", "missing terminating )" },
    { "group('a', '(')", "missing terminating )" },
  };
  const ProgramMap map = { 0 };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    ProgramRun run = { .map = &map };
    ProgramValue v = program_eval (&run, cases[i].expression);
    ls_check_impl (run.wrong && strstr (run.wrong, cases[i].says) && program_value_is_none (&v), __FILE__,
                   __LINE__, "%s: %s", cases[i].expression, run.wrong ? run.wrong : "right");
    program_value_clear (&v);
    g_free (run.wrong);
  }
  g_autofree char *deep = g_strnfill (100000, '(');
  ProgramRun run = { .map = &map };
  ProgramValue v = program_eval (&run, deep);
  LS_CHECK (run.wrong != NULL);
  program_value_clear (&v);
  g_free (run.wrong);
}

#define MAP(reads, options, rules)                                                                           \
  "{\"schema\":\"lockstep.program/1\",\"name\":\"mine\",\"source\":\"a test\",\"program\":\"Mine\","         \
  "\"reads\":" reads ",\"options\":" options ",\"rules\":" rules "}"
#define LOGS(logs)                                                                                           \
  "{\"schema\":\"lockstep.program/1\",\"name\":\"mine\",\"source\":\"a test\",\"program\":\"Mine\","         \
  "\"logs\":" logs "}"
#define UNWRAPS(wrap)                                                                                        \
  "{\"schema\":\"lockstep.program/1\",\"name\":\"mine\",\"source\":\"a test\",\"program\":\"Mine\","         \
  "\"unwraps\":" wrap "}"
#define YAML "[{\"yaml\":\"a:\",\"fits\":\"at(a)\"}]"

static char *
read_text (const char *text, gsize n, const char *name)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsJsonDoc) doc = ls_json_doc_parse (text, n, name, diags);
  g_autoptr (ProgramMap) map = doc ? program_map_read (doc, diags) : NULL;
  LS_CHECK ((map == NULL) == (ls_diag_list_n (diags) > 0));
  return ls_diag_list_format (diags);
}

static void
what_is_wrong_has_a_place (void)
{
  static const struct {
    const char *map, *says; /* "": it is right */
  } cases[] = {
    { MAP (YAML, "[{\"rule\":\"a\"}]", "[{\"strategy\":{\"tp\":\"number(a)\"}}]"), "" },
    { MAP ("[]", "[]", "[]"), "/reads: expected a list of at least one file" },
    { MAP ("[{\"what\":\"x\"}]", "[]", "[]"), "/reads/0: expected \"yaml\"" },
    { MAP ("[{\"starts\":\"mine~train\"}]", "[]", "[]"), "" },
    { MAP ("[{\"yaml\":\"a:\",\"fit\":\"at(a)\"}]", "[]", "[]"), "/reads/0/fit: \"reads\" has no such key" },
    { MAP ("[{\"yaml\":\"a:\",\"under\":true}]", "[]", "[]"), "/reads/0/under: expected a text" },
    { MAP ("[{\"yaml\":\"a:\",\"alone\":\"b\"}]", "[]", "[]"), "/reads/0/alone: expected true or false" },
    { MAP ("[{\"yaml\":\"a:\",\"fits\":\"1 +\"}]", "[]", "[]"), "/reads/0/fits: a value is missing" },
    { MAP ("[{\"yaml\":\"a:\",\"beside\":{\"b\":1}}]", "[]", "[]"), "/reads/0/beside/b: expected an" },
    { MAP ("[{\"starts\":\"a\",\"rules\":[{\"gpus\":\"x\"}]}]", "[]", "[]"),
      "/reads/0/rules/0/gpus: no rule" },
    { MAP (YAML, "[{\"model\":{\"a\":\"colour\"}}]", "[]"), "/options/0/model/a: expected a key of a model" },
    { MAP (YAML, "[{\"rules\":\"a\"}]", "[]"), "/options/0: expected \"option\"" },
    { MAP (YAML, "[{\"model\":\"a\"}]", "[]"), "/options/0/model: expected an object" },
    { MAP (YAML, "[{\"rule\":\"a\"}]", "[]"), "no rule asks for the option a" },
    { MAP (YAML, "[{\"known\":\"a\"}]", "[]"), "" },
    { MAP (YAML, "[]", "[{\"strategy\":{\"tp\":\"number(a)\"}}]"), "there is no option a among the options" },
    { MAP (YAML, "[]", "[{\"strategy\":{\"colour\":1}}]"), "there is no such key of a strategy" },
    { MAP (YAML, "[]", "[{\"paint\":\"red\"}]"), "/rules/0: a rule without an action" },
    { MAP (YAML, "[]", "[{\"inferred\":\"a\",\"says\":\"b\"}]"), "\"inferred\" has no such key \"says\"" },
    { MAP (YAML, "[]", "[{\"open\":\"gpus\"}]"), "/rules/0: missing key \"says\"" },
    { MAP (YAML, "[]", "[{\"copies\":\"1\"}]"), "/rules/0: missing key \"times\"" },
    { MAP (YAML, "[]", "[{\"unknown\":\"{1 +}\"}]"), "/rules/0/unknown: a value is missing" },
    { MAP (YAML, "[]", "[{\"unknown\":1}]"), "/rules/0/unknown: expected a text" },
    { MAP (YAML, "[]", "[{\"rules\":[{\"let\":{\"x\":\"y\"}}]}]"), "/rules/0/rules/0/let/x: no rule before" },
    { MAP (YAML, "[]", "[{\"let\":{\"x\":1}},{\"inferred\":\"{x}\",\"when\":\"x = 1\"}]"), "" },
    { MAP (YAML, "[]", "[{\"for\":\"a\",\"unknown\":\"{each}\"}]"),
      "there is no option a among the options" },
    { MAP (YAML, "[{\"rule\":\"a\"}]", "[{\"for\":\"a\",\"unknown\":\"{each}\",\"when\":\"given(@each)\"}]"),
      "" },
    { MAP (YAML, "[]", "[1]"), "/rules/0: expected an object" },
    { LOGS ("[{\"what\":\"x\",\"lines\":[{\"has\":\"a\",\"seconds\":[\"b\",\"c\"]}]}]"), "" },
    { LOGS ("[{\"what\":\"x\"}]"), "/logs/0: expected \"what\"" },
    { LOGS ("[{\"what\":\"x\",\"lines\":[{\"seconds\":\"b\"}]}]"), "/logs/0/lines/0: expected \"has\"" },
    { LOGS ("[{\"what\":\"x\",\"lines\":[{\"has\":\"a\",\"hours\":\"b\"}]}]"), "/lines/0/hours: expected" },
    { LOGS ("[{\"what\":\"x\",\"lines\":[{\"has\":\"a\",\"seconds\":[]}]}]"), "/lines/0/seconds: expected" },
    { MAP ("[{\"python\":\"a = \"}]", "[]", "[]"), "" },
    { MAP ("[{\"python\":\"a\",\"yaml\":\"a\"}]", "[]", "[]"), "/reads/0: expected \"yaml\", \"toml\"" },
    { MAP ("[{\"python\":\"a\",\"without\":{\"b\":1}}]", "[]", "[]"), "/reads/0/without/b: expected an" },
    { MAP ("[{\"python\":\"a\",\"sets\":{\"b\":1}}]", "[]", "[]"), "/reads/0/sets/b: expected a path" },
    { MAP (YAML, "[]", "[{\"each_of\":\"'a b'\",\"unknown\":\"{each}\"}]"), "" },
    { MAP (YAML, "[]", "[{\"in_json\":\"1 +\",\"gpus\":1}]"), "/rules/0/in_json: a value is missing" },
    { MAP (YAML, "[]", "[{\"table\":{\"a\":1},\"of\":\"'a'\",\"gives\":\"b\"},{\"gpus\":\"b\"}]"), "" },
    { MAP (YAML, "[]", "[{\"read_as\":\"trainer\"}]"), "/rules/0: its options become those of no other" },
    { MAP (YAML, "[{\"as\":\"*\"}]", "[{\"translate\":\"nobody\"}]"),
      "/rules/0/translate: there is no program of that name" },
    { MAP (YAML, "[{\"as\":\"*\"}]", "[{\"translate\":\"trainer\"},{\"say\":{\"colour\":1}}]"),
      "/rules/1/say/colour: there is no option colour of that program" },
    { MAP (YAML, "[]", "[{\"configures\":\"nobody\"}]"),
      "/rules/0/configures: there is no program of that name" },
    { MAP (YAML, "[]", "[{\"configures\":\"mine\",\"told\":{\"a\":\"file()\"}}]"), "" },
    { MAP (YAML, "[]", "[{\"renames\":{\"a\":\"b\"}}]"), "there is no option b among the options" },
    { MAP (YAML, "[{\"rule\":\"b\"}]", "[{\"renames\":{\"a\":\"b\"}}]"), "" },
    { MAP ("[{\"marks\":\"a\",\"rules\":[{\"translate\":\"megatron\"}]}]", "[{\"as\":{\"a\":\"colour\"}}]",
           "[]"),
      "a is as colour, which is no option of that program" },
    { UNWRAPS ("{\"rules\":[]}"), "/unwraps: expected \"when\"" },
    { UNWRAPS ("{\"when\":\"1\",\"rules\":[{\"model\":{\"layers\":1}}]}"),
      "/unwraps/rules/0: a map that unwraps files, and no other" },
    { UNWRAPS ("{\"when\":\"1\",\"rules\":[{\"write\":\"{wrong}\"}]}"), "" },
    { UNWRAPS ("{\"when\":\"1\",\"rules\":[{\"export\":\"'A'\"}]}"), "missing key \"as\"" },
    { MAP (YAML, "[]", "[{\"write\":\"a\"}]"), "/rules/0: a map that unwraps files, and no other" },
    { MAP ("[{\"log\":true,\"lines\":[{}]}]", "[]", "[]"), "/reads/0/lines/0: expected \"has\"" },
    { MAP (YAML, "[{\"as\":{\"a\":\"colour\"}}]", "[{\"translate\":\"megatron\"}]"),
      "a is as colour, which is no option of that program" },
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *said = read_text (cases[i].map, strlen (cases[i].map), "mine.json");
    ls_check_impl (*cases[i].says ? strstr (said, cases[i].says) != NULL : !*said, __FILE__, __LINE__,
                   "case %u: %s", i, said);
  }
}

static void
marks_may_be_long (void)
{
  g_autofree char *mark = g_strnfill (400, 'a'), *text = g_strconcat ("b ", mark, "c", NULL),
                  *other = g_strconcat (mark, "d", NULL);
  LS_CHECK (program_has_marks (text, strlen (text), mark));
  LS_CHECK (!program_has_marks (text, strlen (text), other));
}

static void
maps_that_ship_are_right (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_PROGRAMS);
  LS_CHECK (entries->len > 0);
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    g_autoptr (LsDiagList) diags = ls_diag_list_new ();
    g_autoptr (ProgramMap) map = program_map_load (entry->name, diags);
    g_autofree char *said = ls_diag_list_format (diags);
    ls_check_impl (map != NULL, __FILE__, __LINE__, "%s: %s", entry->path, said);
  }
}

/* One letter of it is another one: what JSON it is stays, mostly. */
static char *
misspelt (const char *text, gsize n, guint32 seed)
{
  static const char letters[] = "aeionrtls_.$*(){}',1 ";
  char *copy = g_strndup (text, n);
  gsize at = (gsize) (seed * 2654435761u) % n;
  while (at < n && !g_ascii_isalnum (copy[at]) && !strchr ("()'", copy[at]))
    at++;
  if (at < n)
    copy[at] = letters[seed % (sizeof letters - 1)];
  return copy;
}

static void
damage_ends_in_a_map_or_a_reason (void)
{
  g_autoptr (GPtrArray) entries = ls_data_list (LS_DATA_PROGRAMS);
  guint n_read = 0, n = 0;
  for (guint i = 0; i < entries->len; i++) {
    const LsDataEntry *entry = entries->pdata[i];
    g_autofree char *text = NULL, *file = g_path_get_basename (entry->path);
    gsize length;
    if (!g_file_get_contents (entry->path, &text, &length, NULL))
      continue;
    for (guint32 seed = 1; seed <= ls_test_cases (100, 300); seed++, n += 2) {
      g_autoptr (GByteArray) b = mutate_bytes (text, length, seed);
      g_autofree char *exact = g_memdup2 (b->data, b->len), *copy = misspelt (text, length, seed),
                      *said = read_text (exact ? exact : "", b->len, file),
                      *also = read_text (copy, length, file);
      LS_CHECK (g_utf8_validate (said, -1, NULL));
      n_read += !*said + !*also;
    }
  }
  printf ("%u of %u damaged maps are read\n", n_read, n);
  LS_CHECK (n_read > 0 && n_read < n);
}

LS_TEST_SUITE (LS_TEST (expressions_have_values), LS_TEST (wrong_expressions_are_said),
               LS_TEST (what_is_wrong_has_a_place), LS_TEST (marks_may_be_long),
               LS_TEST (maps_that_ship_are_right), LS_TEST (damage_ends_in_a_map_or_a_reason))
