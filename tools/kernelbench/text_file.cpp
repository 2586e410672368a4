#include "text_file.h"

#include <cstdio>

#include "json.h"

namespace kb {

std::string
read_text_file (const std::string &path)
{
  std::string text;
  char part[65536];
  FILE *file = fopen (path.c_str (), "rb");
  for (size_t n; file && (n = fread (part, 1, sizeof part, file)) > 0;)
    text.append (part, n);
  bool is_read = file && !ferror (file);
  if (file)
    fclose (file);
  if (!is_read)
    throw PlanError (path + ": error: cannot be read");
  return text;
}

void
write_text_file (const std::string &path, const std::string &text)
{
  std::string beside = path + ".part";
  FILE *file = fopen (beside.c_str (), "wb");
  bool is_written = file && fwrite (text.data (), 1, text.size (), file) == text.size ();
  if (file)
    is_written = fclose (file) == 0 && is_written;
  if (is_written && rename (beside.c_str (), path.c_str ()) == 0)
    return;
  remove (beside.c_str ());
  throw PlanError (path + ": error: cannot be written");
}

}
