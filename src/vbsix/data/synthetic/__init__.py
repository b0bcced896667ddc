"""A built-in corpus: instructions in SCONE's form whose programs are known.

Rows come from random valid programs with English that varies; some wordings can be held out, to be met only in
evaluation. What an utterance means follows from its words alone, so a parser that does not see the world can learn
it; a good share of the utterances refer to what was done before ("do it again", "put it back at the end").
"""

from vbsix.data.synthetic.corpus import Synthetic, generate
from vbsix.data.synthetic.files import write_corpus

__all__ = ["Synthetic", "generate", "write_corpus"]
