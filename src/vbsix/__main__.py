"""`python -m vbsix` is `vbsix`."""

from vbsix.cli import main

main(prog_name="python -m vbsix")
