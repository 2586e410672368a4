"""embed.py MAP.json ... > maps.c: the maps that ship, as texts within the program, for where its data are not at hand."""

import json
import sys
from pathlib import Path

print('/* Made by data/launch/program/embed.py. */\n#include "data/launch/program/program_map.h"\n')
print("const char *const program_embedded[][2] = {")
for path in map(Path, sys.argv[1:]):
    lines = path.read_text(encoding="utf-8").splitlines()
    text = "\n".join("    " + json.dumps(line + "\n", ensure_ascii=True) for line in lines)
    print(f'  {{ "{path.stem}",\n{text} }},')
print("  { NULL, NULL },\n};")
