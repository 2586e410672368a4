/* Pins the words of launch files: options with values, names of '_' and '-' that are the same and are shown as
 * written, the last that holds, trees of configurations as dotted names, and which row of a table fits a name. */
#include "ls_test.h"

#include <string.h>

#include "data/launch/option_table.h"

static char *
values_of (const LaunchWords *w, const char *name)
{
  const LaunchOption *o = launch_words_find (w, name);
  if (!o)
    return g_strdup (g_hash_table_contains (w->off, name) ? "off" : "not there");
  GString *text = g_string_new (o->values->len > 0 ? NULL : "on");
  for (guint i = 0; i < o->values->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "", (const char *) o->values->pdata[i]);
  return g_string_free (text, FALSE);
}

static void
check_option (const LaunchWords *w, const char *name, const char *expected)
{
  g_autofree char *found = values_of (w, name);
  ls_check_impl (strcmp (found, expected) == 0, __FILE__, __LINE__, "%s: %s; found %s", name, expected,
                 found);
}

static void
add_words (LaunchWords *w, const char *text, void (*add) (LaunchWords *, char *const *, guint))
{
  g_auto (GStrv) words = g_strsplit (text, " ", -1);
  add (w, words, g_strv_length (words));
}

static void
names_are_kept_and_compared_alike (void)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  add_words (w, "front --tp_size 8 --tp-size=4 -b 1 2", launch_words_add);
  check_option (w, "tp-size", "4");
  check_option (w, "tp_size", "4");
  check_option (w, "b", "1 2");
  LS_CHECK_STR (launch_words_find (w, "tp_size")->written, "--tp-size");
  LS_CHECK_INT (w->others->len, ==, 1);
}

/* An override turns off what a file turned on, and on. */
static void
the_last_holds (void)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  launch_words_add_value (w, "a.b", "true");
  launch_words_add_value (w, "c", "3");
  check_option (w, "a.b", "on");
  check_option (w, "c", "3");
  launch_words_add_value (w, "a.b", "false");
  launch_words_add_value (w, "c", "None");
  check_option (w, "a.b", "off");
  check_option (w, "c", "off");
  add_words (w, "--c 4", launch_words_add);
  check_option (w, "c", "4");
  LS_CHECK (!g_hash_table_contains (w->off, "c"));
}

static void
trees_are_dotted_names (void)
{
  g_autoptr (LaunchWords) w = launch_words_new ();
  cJSON *tree = cJSON_Parse ("{\"training\": {\"seq_len\": 8192, \"lr\": 0.0003, \"compile\": true},"
                             "\"off\": {\"a\": false, \"b\": null, \"c\": \"\", \"d\": [], \"e\": {}},"
                             "\"flat\": [1, \"two\", true], \"deep\": [{\"x\": 1}, [2, 3]]}");
  launch_words_add_tree (w, tree);
  cJSON_Delete (tree);
  check_option (w, "training.seq_len", "8192");
  check_option (w, "training.lr", "0.0003");
  check_option (w, "training.compile", "on");
  for (const char *name = "abcde"; *name; name++) {
    const char off[] = { 'o', 'f', 'f', '.', *name, '\0' };
    check_option (w, off, "off");
  }
  check_option (w, "flat", "1 two true");
  check_option (w, "deep.0.x", "1");
  check_option (w, "deep.1", "2 3");
  check_option (w, "training", "not there");
}

static void
rows_fit_names (void)
{
  static const OptionRow rows[] = {
    { "num_layers", OPTION_MODEL, "layers" },
    { "n_layers", OPTION_MODEL, "layers", "old" },
    { "p.sp", OPTION_STRATEGY, "sp", .on = "true" },
    { "list.*.x", OPTION_RULE },
    { "log*", OPTION_IGNORED },
    { "*_dir", OPTION_IGNORED },
  };
  const OptionTable table = { rows, G_N_ELEMENTS (rows) };
  static const char *const fits[][2] = { { "num-layers", "num_layers" }, { "list.3.x", "list.*.x" },
                                         { "list.a.b.x", "list.*.x" },   { "log", "log*" },
                                         { "log.a_b", "log*" },          { "a.dump-dir", "*_dir" } };
  static const char *const others[] = { "num_layer", "num_layers2", "list.x", "list.0.xy", "lo", "" };
  for (guint i = 0; i < G_N_ELEMENTS (fits); i++) {
    const OptionRow *row = option_find (&table, fits[i][0]);
    ls_check_impl (row && strcmp (row->option, fits[i][1]) == 0, __FILE__, __LINE__, "%s", fits[i][0]);
  }
  for (guint i = 0; i < G_N_ELEMENTS (others); i++)
    ls_check_impl (!option_find (&table, others[i]), __FILE__, __LINE__, "%s fits", others[i]);
}

LS_TEST_SUITE (LS_TEST (names_are_kept_and_compared_alike), LS_TEST (the_last_holds),
               LS_TEST (trees_are_dotted_names), LS_TEST (rows_fit_names))
