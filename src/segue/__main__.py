"""`python -m segue`: the same as the `segue` command."""

from segue.cli.entry import main

main()
