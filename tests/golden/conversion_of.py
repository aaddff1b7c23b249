"""Runs llama.cpp's converter inside this process, with the pre-tokenizer's name told to it.

The converter brings a `gguf` package of its own, which may know more than the installed one.
"""

import pathlib
import sys


def run(converter, source, target, name, pre):
    """Converts the checkpoint folder `source` to the GGUF file `target`, in f32."""
    converter = str(pathlib.Path(converter).resolve())
    if converter not in sys.path:
        sys.path.insert(0, converter)
        for module in [m for m in sys.modules if m.partition(".")[0] == "gguf"]:
            del sys.modules[module]
    import convert_hf_to_gguf
    from conversion.base import TextModel

    TextModel.get_vocab_base_pre = lambda self, tokenizer: pre
    arguments = sys.argv
    sys.argv = ["convert_hf_to_gguf.py", str(source), "--outtype", "f32", "--outfile", str(target), "--model-name", name]
    try:
        convert_hf_to_gguf.main()
    finally:
        sys.argv = arguments
