/* Pins what of Python is evaluated: what a function returns that only calls, assigns and decides by what is known. */
#include "python_check.h"

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
  check_python ("def f():\n  c = A()\n  if c:\n    c.x = 1\n  c.list.append(2)\n  c.n += 1\n  return c\n",
                "{\"()\":\"A\",\"x\":1,\"list\":\"<c.list.append(2)>\",\"n\":\"<c.n += 1>\"}+1");
  check_python ("def f():\n  c = A()\n  if d:\n    c.x = 1\n  else:\n    c.x = 2\n  return c\n",
                "{\"()\":\"A\",\"x\":\"<if d>\"}+1");
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
                "[2,1,3,4,5]");
  check_python ("def f():\n  a, b = other(n=1)\n  a.x = 2\n  return C(a=a, b=b)\n",
                "{\"()\":\"C\",\"a\":{\"()\":\"<other(n=1)[0]>\",\"x\":2},\"b\":\"<other(n=1)[1]>\"}+1");
  check_python ("def f():\n  a, b = 1, 2, 3\n  return a, b\n", "[\"<1, 2, 3[0]>\",\"<1, 2, 3[1]>\"]+1");
  check_python ("def f():\n  a, b = c = 1, 2\n  return a, b, c\n", "[1,2,[1,2]]");
  check_python ("def f():\n  a = 1, *b\n  return a\n", "\"<1, *b>\"");
  check_python ("def f():\n  a = 1\n  a.x, b = 2, 3\n  return a, b\n", "[1,3]+1");
}

/* Of targets within targets, and of the one that takes the rest. */
static void
tuples_within_tuples_are_unpacked (void)
{
  check_python ("def f():\n  (a, b), c = (1, 2), 3\n  [d, (e, [g])], h = (4, (5, [6])), 7\n"
                "  return a, b, c, d, e, g, h\n",
                "[1,2,3,4,5,6,7]");
  check_python ("def f():\n  a, *b = 1, 2, 3\n  *c, d = 4,\n  e, *g, h = [5, 6, 7, 8]\n  *i, = 9, 10\n"
                "  return a, b, c, d, e, g, h, i\n",
                "[1,[2,3],[],4,5,[6,7],8,[9,10]]");
  check_python ("def f():\n  c = A()\n  (c.x, *c.y), z = (1, 2, 3), 4\n  return c\n",
                "{\"()\":\"A\",\"x\":1,\"y\":[2,3]}");
  check_python ("def f():\n  (a, b), c = g(), 3\n  return a, b, c\n",
                "[\"<g(), 3[0][0]>\",\"<g(), 3[0][1]>\",3]+1");
  check_python ("def f():\n  a, *b, (c, d) = g()\n  return a, b, c, d\n",
                "[\"<g()[0]>\",\"<g()[1:-1]>\",\"<g()[-1][0]>\",\"<g()[-1][1]>\"]+1");
  check_python ("def f():\n  a, b, *c = 1,\n  return c\n", "\"<1,[2:]>\"+1");
  check_python ("def f():\n  *a, *b = 1, 2\n  return 3\n", "3+1");
  check_python ("def f():\n  *a = 1, 2\n  return 3\n", "3+1");
  check_python ("def f():\n  () = ()\n  return 3\n", "3+1");
}

/* Keys are texts, numbers, tuples; of lists places, from the end too. */
static void
parts_are_taken_by_keys (void)
{
  check_python ("T = {('a', 8): 1, ('b', 8): {'n': 2}, 3: 4, 'c': 5, True: 6, None: 7}\n"
                "def f():\n  k = 'a'\n  return T[k, 8], T[('b', 8)]['n'], T[3], T['c'], T[True], T[None]\n",
                "[1,2,4,5,6,7]");
  check_python ("def f():\n  a = [1, (2, 3)]\n  return a[0], a[-1][1], a[1, ], a[2], a[:1], a[0:1], a[b]\n",
                "[1,3,\"<a[1, ]>\",\"<a[2]>\",[1],[1],\"<a[b]>\"]");
  check_python ("def f():\n  d = {('a', 1): 2}\n  return d['a'], d[('a', 2)], {(): 1}, {d: 1}, A(x=1)['x']\n",
                "[\"<d['a']>\",\"<d[('a', 2)]>\",\"<{(): 1}>\",\"<{d: 1}>\",\"<A(x=1)['x']>\"]");
  check_python (F ("A({('a', 1): 2}, **{3: 4})"), "{\"()\":\"A\",\"0\":{\"(\\\"a\\\",1)\":2},\"(3)\":4}");
  check_python (F ("[*[1, 2], 3], (*(4,), 5), [*b, 6], [1, *{'c': 2}]"),
                "[[1,2,3],[4,5],\"<[*b, 6]>\",\"<[1, *{'c': 2}]>\"]");
  check_python ("def f():\n  a = [1, 2]\n  return *a, 3\n", "[1,2,3]");
}

/* What no parameter has the name of, and what is handed over from a dictionary or a list. */
static void
the_rest_of_a_call_is_handed_on (void)
{
  check_python ("def g(a, *rest, b=2, **more):\n  return A(a=a, b=b, r=rest, **more)\n"
                "def f():\n  return g(1, 3, 4, c=5, d=6)\n",
                "{\"()\":\"A\",\"a\":1,\"b\":2,\"r\":[3,4],\"c\":5,\"d\":6}");
  check_python ("def g(l=3, /, *, n, k):\n  return A(n=n, k=k, l=l)\n"
                "def f(n: int = 4, *, m: dict[str, int] = {'a': 1, 'b': 2}, **more: M):\n"
                "  usual = {'n': n, 'k': 1}\n  return g(**{**usual, **more, 'k': 2})\n",
                "{\"()\":\"A\",\"n\":4,\"k\":2,\"l\":3}");
  check_python (F ("[A(*[1, 2], 3), B(**dict(x=1)), {**{'a': 1}, 'b': 2}]"),
                "[{\"()\":\"A\",\"0\":1,\"1\":2,\"2\":3},{\"()\":\"B\",\"x\":1},{\"a\":1,\"b\":2}]");
  check_python (F ("[A(*b), A(*{'a': 1}), A(**B(x=1)), {**B(x=1)}]"),
                "[{\"()\":\"A\"},{\"()\":\"A\"},{\"()\":\"A\"},\"<{**B(x=1)}>\"]+3");
  check_python ("def g(a, **more):\n  return 1\ndef f():\n  return g(b=2)\n", "{\"()\":\"g\",\"b\":2}");
  check_python ("def g(**{}):\n  return 1\ndef f():\n  return [g()]\n", "[null]");
}

/* By what is known; what is not is a hole, and nothing of its "if" is run. */
static void
conditions_of_python_are_decided (void)
{
  check_python (F ("[not 1, 1 < 2, 2 <= 1, 1 == 1.0, 'a' != 'a', None is None, A() is not None, {} is None]"),
                "[false,true,false,true,false,true,true,false]");
  check_python (
      F ("['a' in ['b', 'a'], 'a' not in {'a': 1}, not 1 == 2, 1 == 2 or 3, [] or 4, 5 and 6, 7 or a]"),
      "[true,false,true,3,4,6,7]");
  check_python (F ("[a == 1, a is None, not a, 1 < 2 < 3, 'a' < 'b', a or 1]"),
                "[\"<a == 1>\",\"<a is None>\",\"<not a>\",\"<1 < 2 < 3>\",\"<'a' < 'b'>\","
                "\"<a or 1>\"]");
  check_python (F ("[1 if 0 else 2, 1 if [0] else 2, getattr(A(x=3), 'x', 4), hasattr(A(x=3), 'x')]"),
                "[2,1,3,true]");
  check_python (F ("[getattr(A(), 'x', 4), hasattr(A(), 'x'), isinstance('a', str), isinstance(A(), str),"
                   " isinstance(A(), A)]"),
                "[\"<getattr(A(), 'x', 4)>\",\"<hasattr(A(), 'x')>\",true,false,\"<isinstance(A(), A)>\"]");
  check_python ("def f():\n  c = A(n=2)\n  if c.n == 1:\n    c.x = 1\n  elif c.n == 2:\n    c.x = 2\n"
                "    if c.x < 2:\n      c.y = 1\n  else:\n    c.x = 3\n  return c\n",
                "{\"()\":\"A\",\"n\":2,\"x\":2}");
  check_python ("def g(c, n=None):\n  if n is not None:\n    c.n = n\n    return\n  c.n = 0\n\n"
                "def f():\n  c = A()\n  g(c, 3)\n  return c\n",
                "{\"()\":\"A\",\"n\":3}");
  check_python (
      "def f():\n  c = A()\n  if 1: c.x = 1\n  c.y = 2\n  if 0: c.x = 3\n  else: c.z = 4\n  return c\n",
      "{\"()\":\"A\",\"x\":1,\"y\":2,\"z\":4}");
  check_python (
      "def g(n):\n  if n == 1:\n    return B()\n  return C(n=n)\n\ndef f():\n  return [g(1), g(2), g(a)]\n",
      "[{\"()\":\"B\"},{\"()\":\"C\",\"n\":2},{\"()\":\"g\",\"0\":\"a\"}]");
  check_python ("def g(n):\n  if a:\n    return B()\n  return C(n=n)\n\ndef f():\n  return g(1)\n",
                "{\"()\":\"g\",\"0\":1}");
  check_python ("def h(n):\n  if a:\n    return B()\n  return C(n=n)\n"
                "def g(n):\n  return D(h=h(n), n=n)\n\ndef f():\n  return g(1)\n",
                "{\"()\":\"D\",\"h\":{\"()\":\"h\",\"0\":1},\"n\":1}");
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

/* Each place once, however often it is reached; not those of a call that is taken as it is written. */
static void
statements_that_are_not_followed_are_named (void)
{
  static const char text[]
      = "from m import b\n"
        "def g():\n  return [A(**b), A(**b)]\n"
        "def h(n):\n  if b:\n    return 1\n  return 2\n"
        "def f():\n  c = A(x=1)\n  c.y = [g(), g(), h(1)]\n"
        "  for i in b:  # \xc3\xa4\n    c.x = i\n"
        "  if c.z and c.a_member_of_it_with_a_long_name and c.another_member:\n    c.x = 2\n"
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
                  "r/a.py:11 \"for i in b:  #\"\n"
                  "r/a.py:13 \"if c.z and c.a_member_of_it_with_a_long_name and c.another_m...\"\n"
                  "r/a.py:15 \"c.list.append(\"");
  }
}

static void
malformed_python_is_refused (void)
{
  check_python ("def f():\n  return A(x=\n", "3:0: error: a bracket does not end");
  check_python ("x = 'a\n", "1:0: error: this text does not end");
  check_python (F ("A(x=)"), "2:0: error: expected a value");
  check_python (F ("A(x=1 y=2)"), "2:0: error: expected \")\"");
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
  check_python (
      F ("[['a'] * 2 + ['b'], [1] * 0, [[1]] * 2, list([1]), tuple(a), [2] * n, [a] + b, (1, 2) in {(1, 2): 3},"
         " (1, 3) not in {(1, 2): 3}, 8 in {9: 1}]"),
      "[[\"a\",\"a\",\"b\"],[],[[1],[1]],[1],\"<tuple(a)>\",\"<[2] * n>\",\"<[a] + b>\",true,true,false]");
  check_python (
      "def f():\n  a = [1, 2]\n  x = 7\n  return [[x + 1 for x in a], x, [[y] for y in [list(z) for z in [a]]],"
      " [b for b in c], [x for x in a if x], [x for x, y in a]]\n",
      "[[2,3],7,[[[1,2]]],\"<[b for b in c]>\",[1,2],\"<[x for x, y in a]>\"]");
  check_python (F ("[isinstance('a', P), isinstance('a', a.P), isinstance('a', Sequence), isinstance(b, P)]"),
                "[false,false,\"<isinstance('a', Sequence)>\",\"<isinstance(b, P)>\"]");
  check_python (
      F ("[max(1, 2), min(3, 1, 2), max([2, 5]), max(1, n), max(1, 'a'), max(4), max([]), max([1], key=g)]"),
      "[2,1,5,\"<max(1, n)>\",\"<max(1, 'a')>\",4,\"<max([])>\",\"<max([1], key=g)>\"]");
  check_python (F ("[int(' 4 '), int(2.9), int('4.5'), int('a'), int('8', 16), float('1e-3'), int(True)]"),
                "[4,2,\"<int('4.5')>\",\"<int('a')>\",\"<int('8', 16)>\",0.001,1]");
  check_python (
      F ("[str(128 * 1024), str(True), str('a'), str(None), str(0.5), bool(''), bool('a'), bool(b)]"),
      "[\"131072\",\"True\",\"a\",\"None\",\"0.5\",false,true,\"<bool(b)>\"]");
  check_python (F ("['Ab'.lower(), 'Ab'.upper(), ' a '.strip(), 'a'.title(), 'a'.lower(1), a.lower()]"),
                "[\"ab\",\"AB\",\"a\",\"A\",\"<'a'.lower(1)>\",{\"()\":\"a.lower\"}]");
  check_python (
      "def f():\n  a = [1, 2, 3]\n  b = {'c': 4}\n"
      "  return [a[0], a[-1], a[3], a[1:], a[:], b['c'], b['d'], b.get('c'), b.get('d', 5), b.get('d')]\n",
      "[1,3,\"<a[3]>\",[2,3],[1,2,3],4,\"<b['d']>\",4,5,null]");
  check_python (F ("[os.environ['A'], os.environ.get('A', 1), A(x=1)['x']]"),
                "[\"<os.environ['A']>\",{\"()\":\"os.environ.get\",\"0\":\"A\",\"1\":1},\"<A(x=1)['x']>\"]");
}

/* What a file does, one after the other, and the environment that it asks. */
static void
names_of_python_are_followed (void)
{
  check_of ("x = A(n=1)\nif x.n == 1:\n  x.n = 2\n  x.m = 3\nelse:\n  x.n = 4\ndef g():\n  return 1\ny = 2\n",
            "x", "{\"()\":\"A\",\"n\":2,\"m\":3}");
  check_of ("x = 1\nif y:\n  x = 2\nfor i in j:\n  x = 3\n", "x", "\"<for i in j>\"+2");
  check_of ("a = 1\n", "x", " error: it sets nothing of the name x at the start of a line");
  check_of (
      "x = [os.environ['A'], os.environ['C'], os.environ.get('C', 5), os.getenv('C'), int(os.environ['A']),"
      " 'A' in os.environ, 'C' not in os.environ, os.getenv('B', 'b'), os.environ[y]]",
      "x", "[\"4\",\"<os.environ['C']>\",5,null,4,true,true,\"\",\"<os.environ[y]>\"]");
  check_of ("def on(n, d=False):\n  return os.environ.get(n, '1' if d else '0').lower() in ('1', 'true')\n"
            "x = [on('A'), on('C', True), on('C')]\n",
            "x", "[false,true,false]");
}

LS_TEST_SUITE (LS_TEST (values_of_python_itself_are_known), LS_TEST (names_of_python_are_followed),
               LS_TEST (expressions_of_python_are_evaluated), LS_TEST (statements_of_python_are_followed),
               LS_TEST (parts_are_taken_by_keys), LS_TEST (tuples_are_unpacked),
               LS_TEST (tuples_within_tuples_are_unpacked), LS_TEST (the_rest_of_a_call_is_handed_on),
               LS_TEST (conditions_of_python_are_decided), LS_TEST (files_of_python_import_from_each_other),
               LS_TEST (statements_that_are_not_followed_are_named), LS_TEST (malformed_python_is_refused))
