/* Pins what of Python is read: what a function returns that only calls and assigns, and what a file sets; what
 * is not known decides nothing, and a program is told. Also what a program gets of its command, and what a
 * script that starts one means where the program lies beside it. */
#include "import_check.h"

#include <string.h>

#include "data/python/python.h"

/* What f returns, or what the file sets a name to, as JSON, with '<' and '>' around holes, and "+n" for n
 * statements that are not followed; or "LINE: what". */
static char *
python_of (const char *text, const char *name)
{
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsPython) p = ls_python_new (text, strlen (text), "t", diags);
  g_autoptr (GPtrArray) passed = g_ptr_array_new_with_free_func (g_free);
  cJSON *root = !p ? NULL
      : name       ? ls_python_name (p, name, passed, diags)
                   : ls_python_value (p, "f", passed, diags);
  if (p && ls_python_found (p)->program && !root)
    return g_strdup_printf (" program: %s", ls_python_found (p)->program);
  if (!root) {
    g_autofree char *what = ls_diag_list_format (diags);
    return g_strndup (what + strlen ("t:"), strcspn (what, "\n") - strlen ("t:"));
  }
  char *printed = cJSON_PrintUnformatted (root);
  GString *json = g_string_new (printed);
  cJSON_free (printed);
  cJSON_Delete (root);
  g_string_replace (json, "\\u0001", "<", 0);
  g_string_replace (json, "\\u0002", ">", 0);
  if (passed->len > 0)
    g_string_append_printf (json, "+%u", passed->len);
  return g_string_free (json, FALSE);
}

static void
check_of (const char *text, const char *name, const char *expected)
{
  g_autofree char *got = python_of (text, name);
  ls_check_impl (strcmp (got, expected) == 0, __FILE__, __LINE__, "%s\n=> %s\nbut: %s", text, expected, got);
}

static void
check_python (const char *text, const char *expected)
{
  check_of (text, NULL, expected);
}

#define F(body) "def f():\n  return " body "\n"

static void
expressions_of_python_are_evaluated (void)
{
  check_python (F ("A(x=1, y=B.C('d', e=[1, (2, 3), {'k': None}]))"),
                "{\"()\":\"A\",\"x\":1,\"y\":{\"()\":\"B.C\",\"0\":\"d\",\"e\":[1,[2,3],{\"k\":null}]}}");
  check_python (F ("[2 * 8_192, 7 // 2, -7 % 3, 1e-3, 8 / 2, (1 + 2) * 3, - - 4, 0x]"),
                "[16384,3,2,0.001,4,9,4,\"<0x>\"]");
  check_python (F ("['a' \"b\", 'c' + 'd', r'\\n', '''e\nf''', True, f'{x}']"),
                "[\"ab\",\"cd\",\"\\\\n\",\"e\\nf\",true,\"<f'{x}'>\"]");
  check_python (F ("replace(A(x=1, y=2), y=3, z=torch.bfloat16)"),
                "{\"()\":\"A\",\"x\":1,\"y\":3,\"z\":\"torch.bfloat16\"}");
  check_python (F ("[a and b, 1 if c else 2, d['e'], lambda x: x, [i for i in j], 1 / 0]"),
                "[\"<a and b>\",\"<1 if c else 2>\",\"<d['e']>\",\"<lambda x: x>\",\"<[i for i in j]>\","
                "\"<1 / 0>\"]");
  check_python (F ("A(**b, c=1)"), "{\"()\":\"A\",\"c\":1}+1");
  check_python ("def f():\n  b = {'c': 2, 'd': 3}\n  return A(**b, c=1)\n", "{\"()\":\"A\",\"d\":3,\"c\":1}");
  check_python (F ("{**a, 'b': 1}"), "\"<{**a, 'b': 1}>\"");
}

static void
statements_of_python_are_followed (void)
{
  check_python ("N = 4\ndef g():\n  return A(t=B(x=1), n=N)\n\ndef f() -> A:\n  \"\"\"doc\n  doc\"\"\"\n"
                "  import os\n  c = g()\n  c.t.x = 2 * c.n\n  c.u.v: int = 3\n  assert c\n\n"
                "  def inner():\n    return 1\n\n  # a comment\n  return c\n",
                "{\"()\":\"A\",\"t\":{\"()\":\"B\",\"x\":8},\"n\":4,\"u\":{\"v\":3}}");
  check_python ("def f():\n  m = A.of('x').make()\n  m.n = 8\n  c = B(m=m, p=name)\n  c.p.q.r = 1\n"
                "  c.m.k = 2\n  return c\n",
                "{\"()\":\"B\",\"m\":{\"()\":\"<A.of('x').make()>\",\"n\":8,\"k\":2},"
                "\"p\":{\"()\":\"name\",\"q\":{\"r\":1}}}");
  check_python (
      "def g(n):\n  return A.of(n, n=n).make(x.n)\nN = g('b')\n"
      "def f():\n  return [g('a'), N.more()]\n",
      "[\"<A.of(\\\"a\\\", n=\\\"a\\\").make(x.n)>\",\"<A.of(\\\"b\\\", n=\\\"b\\\").make(x.n).more()>\"]");
  check_python ("def f():\n  a = b = A(x=1)\n  b.x = 2\n  return a\n", "{\"()\":\"A\",\"x\":2}");
  check_python ("from m import f as _f\ndef f():\n  c = _f()\n  c.n = 1\n  return c\n",
                "{\"()\":\"_f\",\"n\":1}");
  check_python ("def f(x):\n  return 1\n", " error: its function f returns nothing");
  check_python ("def f():\n  pass\n", " error: its function f returns nothing");
}

/* Each target gets its part; of what is not known a part that is not, with the members that are set on it. */
static void
tuples_are_unpacked (void)
{
  check_python ("N, M = 2, 3\ndef g(x):\n  return A(x=x), B(y=x)\n"
                "def f():\n  a, b = g(N)\n  a.z = M\n  c = C(a=a)\n  c.b, c.d = b, (4,)\n  return c\n",
                "{\"()\":\"C\",\"a\":{\"()\":\"A\",\"x\":2,\"z\":3},"
                "\"b\":{\"()\":\"B\",\"y\":2},\"d\":[4]}");
  check_python ("def f():\n  (a, b), [c, d], e = 1, 2, 3\n  return 4\n", "4+1");
  check_python ("def f():\n  (a, b) = 1, 2\n  [c,] = [3]\n  d, = 4,\n  (e) = 5\n  a, b = b, a\n"
                "  return a, b, c, d, e\n",
                "[\"<()[0]>\",\"<()[0]>\",\"<()[0]>\",4,\"<()[0]>\"]+3");
  check_python ("def f():\n  a, b = c = 1, 2\n  return a, b, c\n", "[1,2,[1,2]]");
  check_python ("def f():\n  a = 1, *b\n  return a\n", "\"<1, *b>\"");
  check_python ("def f():\n  a = 1\n  a.x, b = 2, 3\n  return a, b\n", "[1,3]+1");
  check_python (F ("(*[])"), "[]");
  check_of ("a = (*b, *[])\na = a not", "a", "2:0: error: expected a value");
}

/* Targets within targets, and the one that takes the rest, are not followed. */
static void
tuples_within_tuples_are_unpacked (void)
{
  check_python ("def f():\n  (a, b), c = (1, 2), 3\n  [d, (e, [g])], h = (4, (5, [6])), 7\n"
                "  return a, b, c, d, e, g, h\n",
                "[\"<()[0]>\",\"<()[0]>\",3,\"<()[0]>\",\"<()[0]>\",\"<()[0]>\",7]+2");
  check_python ("def f():\n  *a, *b = 1, 2\n  return 3\n", "3+1");
  check_python ("def f():\n  *a = 1, 2\n  return 3\n", "3+1");
  check_python ("def f():\n  () = ()\n  return 3\n", "3+1");
}

/* Keys are texts, numbers, tuples; of lists places, from the end too. */
static void
parts_are_taken_by_keys (void)
{
  check_python (F ("[*[1, 2], 3], (*(4,), 5), [*b, 6], [1, *{'c': 2}], {'d': 1, *[2]}"),
                "[[1,2,3],[4,5],\"<[*b, 6]>\",\"<[1, *{'c': 2}]>\",\"<{'d': 1, *[2]}>\"]");
  check_python ("def f():\n  a = [1, 2]\n  return *a, 3\n", "[1,2,3]");
}

/* What no parameter has the name of, and what is handed over from a dictionary or a list. */
static void
the_rest_of_a_call_is_handed_on (void)
{
  check_python ("def g(l=3, /, *, n, k):\n  return A(n=n, k=k, l=l)\n"
                "def f(n: int = 4, *, m: dict[str, int] = {'a': 1, 'b': 2}, **more: M):\n"
                "  usual = {'n': n, 'k': 1}\n  return g(**{**usual, **more, 'k': 2})\n",
                "{\"()\":\"A\",\"n\":4,\"k\":2,\"l\":3}");
  check_python (F ("[A(*[1, 2], 3), B(**dict(x=1)), {**{'a': 1}, 'b': 2}]"),
                "[{\"()\":\"A\",\"0\":1,\"1\":2,\"2\":3},{\"()\":\"B\",\"x\":1},{\"a\":1,\"b\":2}]");
  check_python (F ("[A(*b), A(*{'a': 1}), A(**B(x=1)), {**B(x=1)}]"),
                "[{\"()\":\"A\"},{\"()\":\"A\"},{\"()\":\"A\"},\"<{**B(x=1)}>\"]+3");
  check_python ("def g(a, **more):\n  return 1\ndef f():\n  return g(b=2)\n", "{\"()\":\"g\",\"b\":2}");
}

/* Of what is known, too. */
static void
conditions_of_python_are_open (void)
{
  check_python (F ("[not 1, 1 < 2, 1 is not None, 'a' not in b, 1 if 2 else 3]"),
                "[\"<not 1>\",\"<1 < 2>\",\"<1 is not None>\",\"<'a' not in b>\",\"<1 if 2 else 3>\"]");
  check_python (
      F ("[a == 1, 2 == 1.0, 'a' != 'a', None == 0, 1 == 1 == 1, [1] == [1], a is None, not a, 1 < 2 < 3, 'a' < 'b', a or 1]"),
      "[\"<a == 1>\",false,false,false,\"<1 == 1 == 1>\",\"<[1] == [1]>\",\"<a is None>\",\"<not a>\",\"<1 < 2 < 3>\",\"<'a' < 'b'>\","
      "\"<a or 1>\"]");
}

/* Each file has names of its own: an import is of the file that is called so, under another name too, through
 * a file between, and not of the one that imports. */
static void
files_of_python_import_from_each_other (void)
{
  static const char *const files[][2] = {
    { "r/perf/a.py",
      "from m.r.perf.mid import f as small, N\nfrom m.r.other import g\n"
      "def f():\n  c = small()\n  c.n = N\n  c.g = g()\n  return c\n"
      "def h():\n  return 'not this'\n" },
    { "r/other.py", "def g():\n  return h()\ndef h():\n  return M\nM = 'other'\n" },
    { "r/perf/mid.py", "from m.r.base import f\nN = 3\n" },
    { "r/base.py", "N = 4\ndef f():\n  return Base(n=N, h=h())\ndef h():\n  return 'base'\n" },
    { "x/base.py", "def f():\n  return 'not this'\n" },
  };
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsPython) p = ls_python_new (files[0][1], strlen (files[0][1]), files[0][0], diags);
  for (guint i = 1; i < G_N_ELEMENTS (files); i++)
    LS_CHECK (ls_python_add (p, files[i][1], strlen (files[i][1]), files[i][0], diags));
  LS_CHECK_STR (ls_python_imports (p, 0)->pdata[1], "m.r.other");
  cJSON *root = ls_python_value (p, "f", NULL, diags);
  char *printed = root ? cJSON_PrintUnformatted (root) : NULL;
  LS_CHECK_STR (printed, "{\"()\":\"Base\",\"h\":\"base\",\"n\":3,\"g\":\"other\"}");
  cJSON_free (printed);
  cJSON_Delete (root);
}

/* Of several files, and of one that has others in it. */
static void
faults_are_named_by_their_files (void)
{
  static const char text[] = LS_PYTHON_FILE "base.py\nN = 1\n" LS_PYTHON_FILE "own.py\nM = 2\n\nf = 1 +\n",
                    other[] = "def g():\n  return 1\n";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsPython) p = ls_python_new (text, strlen (text), "all.py", diags);
  LS_CHECK (p && ls_python_add (p, other, strlen (other), "other.py", diags));
  cJSON_Delete (ls_python_name (p, "M", NULL, diags));
  g_autofree char *what = ls_diag_list_format (diags);
  ls_check_impl (g_str_has_prefix (what, "own.py:3:"), __FILE__, __LINE__, "%s", what);
}

/* Each place once, however often it is reached. */
static void
statements_that_are_not_followed_are_named (void)
{
  static const char text[]
      = "from m import b\n"
        "def g():\n  return [A(**b), A(**b)]\n"
        "def f():\n  c = A(x=1)\n  c.y = [g(), g()]\n"
        "  a_function_with_a_long_name(c, another_member_of_it_with_a_long_name)  # \xc3\xa4\n"
        "  c.list.append(\n    2)\n  return c\n";
  g_autoptr (LsDiagList) diags = ls_diag_list_new ();
  g_autoptr (LsPython) p = ls_python_new (text, strlen (text), "r/a.py", diags);
  for (guint i = 0; i < 2; i++) {
    g_autoptr (GPtrArray) passed = g_ptr_array_new_with_free_func (g_free);
    cJSON_Delete (ls_python_value (p, "f", passed, diags));
    g_ptr_array_add (passed, NULL);
    g_autofree char *all = g_strjoinv ("\n", (char **) passed->pdata);
    LS_CHECK_STR (all,
                  "r/a.py:3 \"**b), A(**b)]\"\n"
                  "r/a.py:3 \"**b)]\"\n"
                  "r/a.py:7 \"a_function_with_a_long_name(c, another_member_of_it_with_a_l...\"\n"
                  "r/a.py:8 \"c.list.append(\"");
  }
}

static void
malformed_python_is_refused (void)
{
  check_python ("def f():\n  return A(x=\n", "3:0: error: a bracket does not end");
  check_python ("x = 'a\n", "1:0: error: this text does not end");
  check_python (F ("A(x=)"), "2:0: error: expected a value");
  check_python (F ("f()"), "2:0: error: it is nested too deep, or calls itself");
  g_autofree char *open = g_strnfill (70, '('), *shut = g_strnfill (70, ')'),
                  *deep = g_strdup_printf ("def f():\n  return %s1%s\n", open, shut);
  check_python (deep, "2:0: error: it is nested too deep, or calls itself");
  g_autoptr (GString) large = g_string_new ("def f():\n  x = 1\n");
  for (guint i = 0; i < 20; i++) /* 2^20 items */
    g_string_append (large, "  x = [x, x]\n");
  g_string_append (large, "  return x\n");
  g_autofree char *got = python_of (large->str, NULL);
  LS_CHECK (g_str_has_suffix (got, "error: it makes too much"));
}

/* Functions and methods of Python itself, and parts, of what is known alone. */
static void
values_of_python_itself_are_known (void)
{
  check_python (F ("[os.environ['A'], os.environ.get('A', 1), A(x=1)['x']]"),
                "[\"<os.environ['A']>\",\"<os.environ.get('A', 1)>\",\"<A(x=1)['x']>\"]");
}

/* What a file does, one after the other, and the environment that it asks. */
static void
names_of_python_are_followed (void)
{
  check_of ("x = 1\nif y:\n  x = 2\nfor i in j:\n  x = 3\n", "x", "\"<for i in j>\"+2");
  check_of ("a = 1\n", "x", " error: it sets nothing of the name x at the start of a line");
}

/* Items under keys, of what is known and of what is not; what is set under a key that is not known may be any. */
static void
items_are_set (void)
{
  check_python ("def f():\n  c = A(x={'a': 1})\n  c.x['b'] = 2\n  c.y['z'] = 3\n  return c\n",
                "{\"()\":\"A\",\"x\":{\"a\":1,\"b\":2}}+1");
  check_python ("def f():\n  d = {'a': 1}\n  e = d\n  d[k] = 2\n  return d, e\n",
                "[\"<d[k] = 2>\",\"<d[k] = 2>\"]+1");
  check_python ("def f():\n  a = [1, 2]\n  a[0] = 3\n  return a\n", "\"<a[0] = 3>\"+1");
  check_python ("D = {'a': 1}\ndef f():\n  D['a'] = 2\n  return D\n", "{\"a\":2}");
}

/* "+=" and methods that change what they are called of. */
static void
what_is_set_is_changed (void)
{
  check_python (
      "def f():\n  a, b, c = 1, [1], A(n=2)\n  a += 2\n  a *= 4\n  a -= 1\n  a //= 2\n  b += [2]\n  c.n += a\n"
      "  c.d = {'k': 'x'}\n  c.d['k'] += 'y'\n  a |= 1\n  return a, b, c\n",
      "[\"<a |= 1>\",\"<b += [2]>\",{\"()\":\"A\",\"n\":7,\"d\":{\"k\":\"xy\"}}]+2");
  check_python ("def f():\n  a = [1]\n  b = a\n  a.extend(c)\n  return a, b\n",
                "[\"<a.extend(c)>\",\"<a.extend(c)>\"]+1");
  check_python ("def f():\n  a = [1]\n  a.append(1, 2)\n  b = [1]\n  b.sort()\n  return a, b\n",
                "[\"<a.append(1, 2)>\",\"<b.sort()>\"]+2");
}

/* A name and a member, or two names, may be one object. */
static void
what_is_shared_is_changed_together (void)
{
  check_python (
      "def f():\n  a = A()\n  c = C()\n  c.a = a\n  a.n = 1\n  c.a.m = 2\n  c.b = [a]\n  a.k = 3\n  return c, a\n",
      "[{\"()\":\"C\",\"a\":{\"()\":\"A\",\"n\":1,\"m\":2,\"k\":3},\"b\":[{\"()\":\"A\",\"n\":1,\"m\":2,\"k\":3}]},"
      "{\"()\":\"A\",\"n\":1,\"m\":2,\"k\":3}]");
  check_python (
      "def g(x, y):\n  y.n = x\n  return y\ndef f():\n  a = A()\n  b = g(1, a)\n  a = A(m=2)\n  b.k = 3\n  return a, b\n",
      "[{\"()\":\"A\",\"m\":2},{\"()\":\"A\",\"n\":1,\"k\":3}]");
  check_python (
      "def f():\n  a = other(1)[0]\n  b = a\n  b.n = 1\n  c = replace(A(m=1), n=2)\n  d = replace(c, n=3)\n  d.k = 4\n"
      "  return a, c\n",
      "[{\"()\":\"<other(1)[0]>\",\"n\":1},{\"()\":\"A\",\"m\":1,\"n\":2}]");
}

/* What a block may set that is not followed; nothing of it where it only imports or refuses. */
static void
blocks_that_are_not_followed_are_open (void)
{
  check_python (
      "def g(n):\n  if n > k:\n    raise E('a')\n  if t:\n    import u\n  return A(n=n)\ndef f():\n  return g(2)\n",
      "{\"()\":\"A\",\"n\":2}");
}

/* What it says is not known. */
static void
the_environment_is_set (void)
{
  check_of (
      "import os\nif u:\n  os.environ['A'] = '8'\nos.environ['C'] = v\nx = [os.environ['A'], os.environ['B'], os.environ.get('C')]\n",
      "x", "[\"<os.environ['A']>\",\"<os.environ['B']>\",\"<os.environ.get('C')>\"]+1");
  check_python ("def f():\n  os.environ.setdefault('A', '1')\n  return 1\n",
                "1"); /* of which nothing is known */
  check_of ("os.environ.setdefault('C')\nx = os.environ['C']\n", "x", "\"<os.environ['C']>\"");
  check_of ("import os\ndel os.environ['A']\nx = os.getenv('A', 1)\n", "x", "\"<os.getenv('A', 1)>\"+1");
}

/* What "*=" makes of a list or a dictionary is not known, in all of its names. */
static void
operators_change_in_place (void)
{
  check_python (
      "def f():\n  a, c = [1], {'k': 1}\n  b, d = a, c\n  a *= 2\n  c |= {'m': 2}\n  return a, b, c, d\n",
      "[\"<a *= 2>\",\"<a *= 2>\",\"<c |= {'m': 2}>\",\"<c |= {'m': 2}>\"]+2");
}

/* Objects that functions may change which are not here, within others, or of the whole file. */
static void
what_others_may_change_is_told (void)
{
  check_python ("def f():\n  c = A(n=1)\n  x = other(c)\n  return c\n", "{\"()\":\"A\",\"n\":1}+1");
  check_python (
      "def f():\n  c, d = A(n=1), [1]\n  x = [B(c), m.C(d), len(d), print(c), other(c.n), other([1])]\n  return c\n",
      "{\"()\":\"A\",\"n\":1}");
  check_python ("def g(k, c):\n  c.n = k\ndef f():\n  a = A(n=1)\n  g(3, a)\n  g(c=a, k=4)\n  return a\n",
                "{\"()\":\"A\",\"n\":4}");
}

static void
powers_are_known (void)
{
  check_python (F ("[2 ** 10, 2 ** 3 ** 2, -2 ** 2, 2 ** -1, 2 ** 70]"), "[1024,512,-4,0.5,\"<2 ** 70>\"]");
}

static void
slices_are_open (void)
{
  check_python (F ("[[1, 2][a:], [1][::0], {1, 2}[:1], b[1:], [1][0.5:]]"),
                "[\"<[1, 2][a:]>\",\"<[1][::0]>\",\"<{1, 2}[:1]>\",\"<b[1:]>\",\"<[1][0.5:]>\"]");
}

/* Of what is known, too. */
static void
comprehensions_are_open (void)
{
  check_python (
      F ("[[x for x in a if x], [x for x in [1, 2] if a], {k: 1 for k in a}, [x for x, y in [1]], [x for x in {1, 2}]]"),
      "[\"<[x for x in a if x]>\",\"<[x for x in [1, 2] if a]>\",\"<{k: 1 for k in a}>\",\"<[x for x, y in [1]]>\","
      "\"<[x for x in {1, 2}]>\"]");
}

/* What the bodies of classes set; of one that has a constructor it is not known. */
static void
classes_have_members (void)
{
  check_python (
      "class D:\n  n = 3\n  m = 4\nclass E(D):\n  m = 5\ndef f():\n  return D.n, E.m, E.n, D().n, E(n=9).n, D.z, [D.z == 1]\n",
      "[3,5,3,3,9,\"D.z\",[\"<D.z == 1>\"]]");
}

/* What a parameter usually is, is made where the function is defined. */
static void
usual_values_are_of_the_definition (void)
{
  check_python ("N = 1\ndef g(n=N):\n  return n\nN = 2\ndef f():\n  return g(), N\n", "[1,2]");
  check_python ("def g(n=..., m=3):\n  return m\ndef f():\n  return g(1), g()\n", "[3,3]");
  check_python ("def g(c):\n  c = A(n=2)\n  return 1\ndef f():\n  c = A(n=1)\n  g(c)\n  return c\n",
                "{\"()\":\"A\",\"n\":1}");
}

static void
names_of_the_file_are_set (void)
{
  check_of ("c = A(n=1)\ndef g(c):\n  c.n = 2\ng(c)\nx = c\n", "x", "{\"()\":\"A\",\"n\":2}");
}

/* Names of what is known, in texts; others, and what Python's own functions give, are open. */
static void
texts_are_formed (void)
{
  check_python (
      "def f():\n  n, a = 8, A(m=3)\n  return f'{n}b', f'{ a.m }-{{n}}', f'{None}', f'{n:03d}', f'{n + 1}', f'{k}', f'{n'\n",
      "[\"8b\",\"3-{n}\",\"<f'{None}'>\",\"<f'{n:03d}'>\",\"<f'{n + 1}'>\",\"<f'{k}'>\",\"<f'{n'>\"]");
  check_python (
      F ("['\\x41', '\\d', r'\\d', 'a\\\nb\\t\\'', str(2), int('3'), float('1e3'), max(1, 2), 'a b'.split()]"),
      "[\"<'\\\\x41'>\",\"<'\\\\d'>\",\"\\\\d\",\"ab\\t'\",\"2\",3,1000,\"<max(1, 2)>\",\"<'a b'.split()>\"]");
}

/* One with control flow, or that changes names of others, is none that is read; nor is what it gives known. */
static void
programs_are_told (void)
{
  static const char *const bodies[] = { "for i in a:\n    b = 1\n",
                                        "if a:\n    b = 1\n",
                                        "while a:\n    b = 1\n",
                                        "try:\n    b = 1\n  except E:\n    pass\n",
                                        "with a as b:\n    b.c = 1\n",
                                        "global a\n  a = 1\n",
                                        "b = [c := 1]\n",
                                        "class A:\n    pass\n",
                                        "yield 1\n",
                                        "def g():\n    a.b = 1\n" };
  for (guint i = 0; i < G_N_ELEMENTS (bodies); i++) {
    g_autofree char *text = g_strdup_printf ("def f():\n  %s  return 1\n", bodies[i]);
    check_python (text, " program: t:1 \"def f():\"");
  }
  check_python ("def g(c):\n  for i in c:\n    c.x = i\ndef f():\n  c = A(n=1)\n  g(c)\n  return c\n",
                "{\"()\":\"A\",\"n\":1}+1");
  check_of ("c = A(n=1, m=2)\nl = [1]\nfor i in l:\n  c.n = i\n  l.append(2)\nx = [c, l, i]\n", "x",
            "[{\"()\":\"A\",\"m\":2,\"n\":\"<for i in l>\"},\"<for i in l>\",\"<for i in l>\"]+1");
  check_python ("def f():\n  def g(x):\n    a, b = x\n    return a\n  return A(g=g, h=g(1))\n",
                "{\"()\":\"A\",\"g\":\"<g>\",\"h\":\"<g(1)>\"}");
}

/* Of a file, by what is known too: all branches are. */
static void
conditions_of_a_file_are_open (void)
{
  check_of (
      "x = A(n=1)\nif x.n == 1:\n  x.n = 2\nelif y: x.m = 3\nelse:\n  x.n, x.m = 4, 5\n  if 0: x.k = 6\n",
      "x", "{\"()\":\"A\",\"n\":\"<else[0]>\",\"m\":\"<else[1]>\",\"k\":\"<else>\"}+3");
}

/* What a class declares; what its own code sets is open. */
static void
fields_are_declared (void)
{
  check_python (
      "@dataclass\nclass B:\n  a: list = field(default_factory=lambda: [1])\n  b: int = field(default=7)\n  c: int\n  d: D = field(default_factory=D)\n"
      "  e: int = 5\n  def __post_init__(self):\n    self.e = 6\n  def h(self):\n    return 1\ndef f():\n  x = B()\n  x.a += [2]\n  return x, B()\n",
      "[{\"()\":\"B\",\"b\":7,\"d\":\"<default_factory>\",\"e\":\"<__post_init__>\",\"a\":\"<x.a += [2]>\"},"
      "{\"()\":\"B\",\"a\":[1],\"b\":7,\"d\":\"<default_factory>\",\"e\":\"<__post_init__>\"}]+1");
}

/* --- options that a program declares -------------------------------------------------------------------- */

/* The program lies beside the script, which writes it here. */
#define TRAIN(program)                                                                                       \
  "cat > train.py <<'EOF'\nimport os\n" program "EOF\n"                                                      \
  "export NCCL_PROTO=LL\n"                                                                                   \
  "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir out --bf16\n"

static void
programs_beside_a_script_are_read (void)
{
  check (
      TRAIN (
          "@dataclass\nclass T(transformers.TrainingArguments):\n  per_device_train_batch_size: int = 2\n"
          "  model_max_length: int = 512\n  note: str = 'x'\n"
          "def train():\n  parser = HfArgumentParser((M, T))\n  m, t = parser.parse_args_into_dataclasses()\n"
          "  while True:\n    step()\n"
          "if __name__ == '__main__':\n  train()\n"),
      "micro_batch=2; seq=512; ~declares them: --per_device_train_batch_size 2, --model_max_length 512");
  check (
      TRAIN ("p = argparse.ArgumentParser()\np.add_argument('--bf16', action='store_true')\n"
             "p.add_argument('--per_device_train_batch_size', type=int, default=3)\n"
             "args = p.parse_args()\nif args.bf16:\n  os.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n"
             "if os.environ.get('NCCL_PROTO') == 'LL':\n  os.environ['NCCL_ALGO'] = 'Ring'\n"
             "os.environ.setdefault('NCCL_MAX_CTAS', str(2 * 3))\n"),
      "micro_batch=3; ?CUDA_LAUNCH_BLOCKING: its value is; ?NCCL_ALGO: its value is; ?NCCL_MAX_CTAS: its value is");
  check (TRAIN ("x = (\n"), "micro_batch=8");
  check (TRAIN ("def train(:\n  x = = 1\ntrain()\n"), "micro_batch=8");
}

/* Packages make options of a function's parameters, of decorators and of a class. What is not known of one that
 * matters is told, and so are packages that are not followed. */
static void
options_of_functions_and_classes_are_read (void)
{
  check (
      TRAIN (
          "def train(base: str = 'a', *, max_seq_length: int = 256, per_device_train_batch_size=3):\n  pass\n"
          "if __name__ == '__main__':\n  fire.Fire(train)\n"),
      "micro_batch=3; seq=256");
  check (
      TRAIN ("def train(base: str = 'a', max_seq_length: int = 256, per_device_train_batch_size=3):\n  pass\n"
             "if __name__ == '__main__':\n  fire.Fire(train)\n"),
      "micro_batch=3; seq=256; ~as train.py declares them: --max_seq_length 256");
  check (
      TRAIN ("import click\n@click.option('-s', '--max-seq-length', default=512)\ndef main(**a):\n  pass\n"),
      "?what train.py takes where the command says nothing: it reads options by click");
  check (TRAIN ("@dataclass\nclass C:\n  max_seq_length: int = 128\nmain(tyro.cli(C))\n"), "seq=128");
  check (TRAIN ("import hydra\n@hydra.main(config_path='c')\ndef main(c):\n  pass\nmain()\n"),
         "?what train.py takes where the command says nothing: it reads options by hydra");
  check (
      TRAIN ("def get():\n  p = argparse.ArgumentParser()\n  p.add_argument('--max_seq_length', default=64)\n"
             "  return p.parse_args()\nother.run(get())\n"),
      "seq=64");
}

/* A file that a program hands to deepspeed.initialize is DeepSpeed's configuration; what it makes of it is open. */
static void
a_configuration_for_deepspeed_is_told (void)
{
  check (TRAIN ("def main():\n  engine, *_ = deepspeed.initialize(model=m(), config={'a': 1})\nmain()\n"),
         "dp_kind=deepspeed; zero; ?zero_optimization.stage: its value is the script of Python");
  check (TRAIN ("def main():\n  deepspeed.initialize(model=m(), config_params='ds.json')\n"),
         "dp_kind=deepspeed; zero; ?ds.json");
  check (TRAIN ("def f():\n  deepspeed.other(config={'zero_optimization': {'stage': 1}})\n"), "dp_kind=ddp");
}

/* A Trainer stops at it; DeepSpeed takes its own. */
static void
a_batch_that_is_said_twice_is_told (void)
{
#define COMMAND(batch)                                                                                       \
  "cat > ds.json <<E\n{\"train_micro_batch_size_per_gpu\": 4, \"zero_optimization\": {\"stage\": 2}}\nE\n"   \
  "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-1.5B --output_dir out --bf16 "     \
  "--deepspeed ds.json --per_device_train_batch_size " batch "\n"
  check (COMMAND ("2"),
         "micro_batch=4; ?train_micro_batch_size_per_gpu 4: it is taken, and "
         "per_device_train_batch_size says 2");
  LsImported import;
  if (!read_text (COMMAND ("4"), &import))
    return;
  LS_CHECK (!has_line (&import, LS_REMARK_UNKNOWN, "it is taken"));
  ls_import_clear (&import);
#undef COMMAND
}

LS_TEST_SUITE (LS_TEST (values_of_python_itself_are_known), LS_TEST (names_of_python_are_followed),
               LS_TEST (expressions_of_python_are_evaluated), LS_TEST (statements_of_python_are_followed),
               LS_TEST (parts_are_taken_by_keys), LS_TEST (tuples_are_unpacked),
               LS_TEST (tuples_within_tuples_are_unpacked), LS_TEST (the_rest_of_a_call_is_handed_on),
               LS_TEST (conditions_of_python_are_open), LS_TEST (files_of_python_import_from_each_other),
               LS_TEST (statements_that_are_not_followed_are_named), LS_TEST (malformed_python_is_refused),
               LS_TEST (faults_are_named_by_their_files), LS_TEST (items_are_set),
               LS_TEST (what_is_set_is_changed), LS_TEST (what_is_shared_is_changed_together),
               LS_TEST (blocks_that_are_not_followed_are_open), LS_TEST (the_environment_is_set),
               LS_TEST (operators_change_in_place), LS_TEST (what_others_may_change_is_told),
               LS_TEST (powers_are_known), LS_TEST (slices_are_open), LS_TEST (comprehensions_are_open),
               LS_TEST (classes_have_members), LS_TEST (usual_values_are_of_the_definition),
               LS_TEST (names_of_the_file_are_set), LS_TEST (texts_are_formed), LS_TEST (programs_are_told),
               LS_TEST (conditions_of_a_file_are_open), LS_TEST (fields_are_declared),
               LS_TEST (programs_beside_a_script_are_read),
               LS_TEST (options_of_functions_and_classes_are_read),
               LS_TEST (a_configuration_for_deepspeed_is_told), LS_TEST (a_batch_that_is_said_twice_is_told))
